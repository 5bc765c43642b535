package roles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"grl/proto/access"
	"grl/proto/tlsfiles"
	"grl/roles/controller"
	"grl/roles/controller/people"
	"grl/store"
	"grl/store/etcd"
	"grl/store/ledger"
)

// buildController opens the stores, which close after the controller ended.
func buildController(ctx context.Context, c Config, p parts) (*node, error) {
	history, err := store.Open(ctx, c.Controller.DB)
	if err != nil {
		return nil, fmt.Errorf("controller.db: %w", err)
	}
	engine, err := openEngine(ctx, c, p, history)
	if err != nil {
		return nil, errors.Join(err, history.Close())
	}
	closeAll := func() error {
		if engine == store.Engine(history) {
			return history.Close()
		}
		return errors.Join(engine.Close(), history.Close())
	}
	log := p.log.With("region", c.Controller.Region)
	book := ledger.New(engine)
	who, err := people.New(people.Options{
		Ledger: book, Log: log, OIDC: c.Controller.OIDC(),
		Lost: engine == store.Engine(history) && len(history.SetAside()) > 0,
	})
	if err != nil {
		return nil, errors.Join(err, closeAll())
	}
	ctl, err := controller.New(ctx, controller.Options{
		Config: c.Controller, Version: p.version, Registry: p.registry, Store: history, Engine: engine, People: who,
		Log:     log,
		HTTP:    p.dial(anyController),
		AnyHost: reachable(c.Controller.Listen),
	})
	if err != nil {
		return nil, errors.Join(err, closeAll())
	}
	return &node{
		run: ctl.Run, ready: ctl.Ready, reload: ctl.Reload, close: closeAll,
		handlers: map[string]http.Handler{"controller.listen": ctl.Handler()},
		services: controller.Services(),
		people:   who,
		refused: func(ctx context.Context, r access.Refusal) {
			if err := noteRefusal(ctx, book, r); err != nil {
				log.ErrorContext(ctx, "cannot note a refusal in the audit", "procedure", r.Path, "from", r.From, "err", err)
			}
		},
	}, nil
}

// openEngine opens what keeps the ledger: the store itself, or etcd.
func openEngine(ctx context.Context, c Config, p parts, history *store.Store) (store.Engine, error) {
	if c.Controller.Store != controller.Etcd {
		return history, nil
	}
	o := etcd.Options{Endpoints: c.Controller.Etcd}
	if slices.ContainsFunc(c.Controller.Etcd, func(address string) bool { return strings.HasPrefix(address, "https://") }) {
		var err error
		if o.TLS, err = etcdTLS(c.TLS); err != nil {
			return nil, fmt.Errorf("controller.etcd: %w", err)
		}
	}
	engine, err := etcd.Open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("controller.etcd: %w", err)
	}
	return engine, nil
}

// etcdTLS returns how to speak to etcd: with the certificate of this node, read
// anew for each connection, and its authorities.
func etcdTLS(c tlsfiles.Config) (*tls.Config, error) {
	text, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("read tls.ca, which https needs: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("tls.ca: no certificate in %s", c.CA)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		RootCAs:    roots,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
			return &pair, err
		},
	}, nil
}

// noteRefusal writes into the audit that a request was refused.
func noteRefusal(ctx context.Context, book *ledger.Ledger, r access.Refusal) error {
	actor := "nobody"
	switch {
	case r.Person != nil:
		actor = r.Person.Name
	case r.Node != nil:
		actor = r.Node.String()
	}
	act := ledger.Act{Actor: actor, From: r.From, Reason: r.Text, RequestID: r.RequestID, At: time.Now()}
	return book.Note(context.WithoutCancel(ctx), act, "access.refused", []string{r.Path}, "", "")
}
