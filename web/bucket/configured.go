package bucket

import (
	"context"
	"sync"

	"connectrpc.com/connect"

	"grl/limiter"
	"grl/limiter/limitsfile"
	grlv1 "grl/proto/grl/v1"
)

// configured is a service as one revision has it.
type configured struct {
	revision uint64
	service  limiter.Service
}

// bucket returns one of the service by its name in it; nil: there is none.
func (c *configured) bucket(name string) *limiter.Bucket {
	if c == nil {
		return nil
	}
	for i := range c.service.Buckets {
		if c.service.Buckets[i].Name == name {
			return &c.service.Buckets[i]
		}
	}
	return nil
}

const mostServices = 32

// services keeps the services that were lately looked at: a revision never
// changes.
type services struct {
	mu   sync.Mutex
	kept map[serviceAt]*configured // guarded by mu
}

type serviceAt struct {
	service  string
	revision uint64
}

func newServices() *services { return &services{kept: make(map[serviceAt]*configured)} }

// configuration returns a service at a revision, 0: the present one. It is nil
// without an error where this controller does not have the configuration; of a
// service that is not there it has no buckets.
func (s site) configuration(ctx context.Context, service string, revision uint64) (*configured, error) {
	if s.Services.Config == nil {
		return nil, nil
	}
	if revision == 0 {
		latest, err := s.Services.Config.ListRevisions(ctx, &grlv1.ListRevisionsRequest{PageSize: 1})
		switch {
		case err != nil:
			return nil, err
		case len(latest.GetRevisions()) == 0:
			return &configured{service: limiter.Service{Name: service}}, nil
		}
		revision = latest.GetRevisions()[0].GetNumber()
	}
	key := serviceAt{service, revision}
	s.services.mu.Lock()
	c := s.services.kept[key]
	s.services.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := s.readConfiguration(ctx, service, revision)
	if err != nil {
		return nil, err
	}
	s.services.mu.Lock()
	defer s.services.mu.Unlock()
	if len(s.services.kept) >= mostServices {
		clear(s.services.kept)
	}
	s.services.kept[key] = c
	return c, nil
}

func (s site) readConfiguration(ctx context.Context, service string, revision uint64) (*configured, error) {
	c := &configured{revision: revision, service: limiter.Service{Name: service}}
	got, err := s.Services.Config.GetConfiguration(ctx, &grlv1.GetConfigurationRequest{Revision: revision, Service: service})
	switch connect.CodeOf(err) {
	case connect.CodeNotFound, connect.CodeInvalidArgument: // there is none, or can be none of that name
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	for _, f := range got.GetFiles() {
		file, err := limitsfile.Parse(f.GetName(), f.GetData())
		if err != nil {
			return nil, err
		}
		c.service = file.Service
	}
	return c, nil
}
