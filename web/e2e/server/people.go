package main

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
	"grl/roles/controller/people"
	"grl/store"
	"grl/store/ledger"
	"grl/web"
)

// pages returns the dashboard, and where dir is not empty also who signs in
// there, behind the gate of a controller on loopback.
func pages(o web.Options, dir string) (http.Handler, error) {
	if dir == "" {
		return web.New(o), nil
	}
	s, err := store.Open(context.Background(), dir)
	if err != nil {
		return nil, err
	}
	persons, err := people.New(people.Options{Ledger: ledger.New(s), Log: o.Log})
	if err != nil {
		return nil, err
	}
	o.People = persons
	gate := access.NewGate(access.Options{
		Role: access.Controller, Anonymous: access.Admin, People: persons, Registry: prometheus.NewRegistry(),
	})
	return gate.Handler(web.New(o)), nil
}
