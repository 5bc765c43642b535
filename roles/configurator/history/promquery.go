package history

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

const (
	requests   = "grl_client_requests_total"
	regionName = "region" // labels that the scrape adds
	zoneName   = "zone"
	callerName = "caller"
	bucketName = "bucket"
	// capsBucket is under which bucket of a service clients count its caps.
	capsBucket = "/_cap"
)

// errSplit is an answer that is too large: half a query may do.
var errSplit = errors.New("too large")

// offered returns the query of what was offered to buckets: all decisions. Rates
// over five steps bridge a scrape or two that failed: counters have it all.
func (p *Prometheus) offered(k kind, buckets []string) string {
	selector := fmt.Sprintf("%s{bucket=~%s}", requests, anyOf(buckets))
	return p.load(k, selector, 2) + " or " + p.load(k, selector, 5)
}

// load returns the load of each bucket and part of it; of callers each of which
// has the whole limit, the highest.
func (p *Prometheus) load(k kind, selector string, steps int) string {
	if !k.callers {
		return p.sum(selector, steps, k.label)
	}
	return fmt.Sprintf("max by (%s) (%s)", by(k.label), p.sum(selector, steps, k.label, callerName))
}

// dropped returns the query of when something was dropped of it.
func (p *Prometheus) dropped(k kind, buckets []string) string {
	return p.sum(fmt.Sprintf(`%s{decision="dropped",bucket=~%s}`, requests, anyOf(buckets)), 2, k.label) + " > 0"
}

// capped returns the query of when caps were on services.
func (p *Prometheus) capped(services []string) string {
	names := make([]string, len(services))
	for i, s := range services {
		names[i] = s + capsBucket
	}
	return p.sum(fmt.Sprintf("%s{bucket=~%s}", requests, anyOf(names)), 2) + " > 0"
}

func (p *Prometheus) sum(selector string, steps int, labels ...string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s[%ds]))", by(labels...), selector, steps*int(p.step.Seconds()))
}

// by returns a list of labels, that of the bucket first; empty ones are none.
func by(labels ...string) string {
	list := bucketName
	for _, label := range labels {
		if label != "" {
			list += "," + label
		}
	}
	return list
}

// anyOf returns a quoted regular expression of names.
func anyOf(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return strconv.Quote(strings.Join(quoted, "|"))
}

// answer is what a query gave.
type answer struct {
	series  model.Matrix
	warning string
}

// ask returns the values at the ends of the steps in [from, to). It tries again
// while that may help; errSplit is one of its errors.
func (p *Prometheus) ask(ctx context.Context, query string, from, to time.Time) (answer, error) {
	var a answer
	var err error
	for try := range tries {
		if err := wait(ctx, try); err != nil {
			return answer{}, err
		}
		var again bool
		if a, again, err = p.askOnce(ctx, query, from, to); !again {
			break
		}
	}
	return a, err
}

func (p *Prometheus) askOnce(ctx context.Context, query string, from, to time.Time) (a answer, again bool, err error) {
	ctx, partial := withPartial(ctx)
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	value, warnings, _, err := p.api.QueryRange(limited, query, prometheus.Range{Start: from.Add(p.step), End: to, Step: p.step})
	if err != nil {
		again, err = judgeError(err)
		return answer{}, again && ctx.Err() == nil, err
	}
	series, ok := value.(model.Matrix)
	if !ok {
		return answer{}, false, fmt.Errorf("the answer is a %T: want a matrix", value) // nil if it has no data
	}
	a = answer{series: series, warning: strings.Join(warnings, "; ")}
	if *partial && a.warning == "" {
		a.warning = "the answer is partial"
	}
	return a, false, nil
}

// judgeError tells whether the same query may do better later, and marks what
// half of it may do, and what none will.
func judgeError(err error) (again bool, _ error) {
	if errors.Is(err, errTooLarge) {
		return false, fmt.Errorf("%w: %w", errSplit, err)
	}
	if errors.Is(err, errRefused) {
		return false, err
	}
	var e *prometheus.Error
	if !errors.As(err, &e) {
		return true, err // the network, or the deadline
	}
	switch e.Type {
	case prometheus.ErrExec, prometheus.ErrTimeout, "422":
		return false, fmt.Errorf("%w: %w", errSplit, err)
	case prometheus.ErrServer, prometheus.ErrCanceled:
		return true, err
	case prometheus.ErrClient:
		if strings.HasSuffix(e.Msg, strconv.Itoa(http.StatusTooManyRequests)) {
			return true, err
		}
		return false, fmt.Errorf("%w: %w", errRefused, err)
	default:
		return false, err
	}
}
