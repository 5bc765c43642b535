// Package notify tells a webhook which alerts fire, and which have ended, as the
// Alertmanager of Prometheus tells its webhooks: what understands the one
// understands the other.
package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"grl/policy/alert"
)

const (
	// firstRetry is how long to wait after a message that was not taken; each
	// further one doubles it, up to lastRetry. Half of it is drawn.
	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
	// sendWithin bounds one message.
	sendWithin = 10 * time.Second
)

// Options says where to send.
type Options struct {
	// URL takes the messages; empty: nothing is sent.
	URL string
	// SecretFile holds a secret of at least 16 bytes, read anew for each message,
	// by which messages are signed; empty: they are not.
	SecretFile string
	// PublicURL is where people reach the dashboard; empty: messages do not link
	// to it.
	PublicURL string
	// HTTP sends; nil: a client of its own. Redirects are never followed.
	HTTP *http.Client
	Log  *slog.Logger
}

// Sender brings a receiver to know what fires. There is no queue that could grow
// or grow old: it is told the difference between what fires and what it was told
// last, however long it did not answer. Create it with New. All methods may be
// called concurrently; none of them waits for the receiver but Run.
type Sender struct {
	opts Options
	http http.Client
	wake chan struct{} // what fires changed; capacity 1

	mu      sync.Mutex // guards all below
	leads   bool
	firing  map[alert.Key]Alert
	told    map[alert.Key]Alert // what the receiver knows as firing, or may
	problem string
}

// Alert is one that fires.
type Alert struct {
	alert.Key
	Text  string
	Since time.Time
	Path  string // of the page that shows it

	ended  time.Time // zero: it fires
	unsure bool      // a message with it was sent, and not answered well
}

// New returns a sender.
func New(o Options) *Sender {
	s := &Sender{opts: o, wake: make(chan struct{}, 1), told: make(map[alert.Key]Alert)}
	if o.HTTP != nil {
		s.http = *o.HTTP
	}
	s.http.Timeout = sendWithin
	s.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
}

// Where returns where messages go, without what may be secret in it: scheme and
// host; empty: nowhere.
func (s *Sender) Where() string {
	if s.opts.URL == "" {
		return ""
	}
	u, err := url.Parse(s.opts.URL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Problem returns why the last message was not taken; empty: it was, or there was
// none.
func (s *Sender) Problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

// Set says what fires now, each alert once. Who does not lead sends nothing, and
// when it leads it tells anew all that fires: it does not know what the one before
// had told.
func (s *Sender) Set(now time.Time, leads bool, firing []Alert) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leads = leads; !leads {
		s.firing, s.problem = nil, ""
		clear(s.told)
		return
	}
	s.firing = make(map[alert.Key]Alert, len(firing))
	for _, a := range firing {
		s.firing[a.Key] = a
	}
	for key, a := range s.told {
		if _, fires := s.firing[key]; !fires && a.ended.IsZero() {
			a.ended = now
			s.told[key] = a
		}
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Told reports whether the receiver was told that an alert fires, and not yet that
// it has ended.
func (s *Sender) Told(key alert.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, told := s.told[key]
	return told
}

// Run sends until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	if s.opts.URL == "" {
		return nil
	}
	var wait time.Duration
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		}
		for ctx.Err() == nil {
			messages := s.due()
			if len(messages) == 0 {
				break
			}
			if err := s.sendAll(ctx, messages); err == nil {
				wait = 0
				continue
			} else if ctx.Err() == nil {
				s.fail(ctx, err)
			}
			wait = min(max(firstRetry, 2*wait), lastRetry)
			select {
			case <-ctx.Done():
			case <-time.After(wait/2 + rand.N(wait/2)):
			}
		}
	}
}

// due returns what the receiver does not know yet, a message for each rule, or
// several.
func (s *Sender) due() [][]Alert {
	s.mu.Lock()
	defer s.mu.Unlock()
	byRule := make(map[alert.Rule][]Alert)
	for key, a := range s.told {
		if !a.ended.IsZero() {
			if _, again := s.firing[key]; !again {
				byRule[key.Rule] = append(byRule[key.Rule], a)
			}
		}
	}
	for key, a := range s.firing {
		if told, known := s.told[key]; !known || !told.ended.IsZero() || told.unsure {
			byRule[key.Rule] = append(byRule[key.Rule], a)
		}
	}
	var messages [][]Alert
	for _, rule := range slices.Sorted(maps.Keys(byRule)) {
		all := byRule[rule]
		slices.SortFunc(all, compare)
		messages = slices.AppendSeq(messages, slices.Chunk(all, mostAlerts))
	}
	return messages
}

// sendAll sends messages one after another, up to the first that is not taken.
func (s *Sender) sendAll(ctx context.Context, messages [][]Alert) error {
	for _, m := range messages {
		if err := s.send(ctx, m); err != nil {
			s.mayKnow(m)
			return err
		}
		s.took(ctx, m)
	}
	return nil
}

// took notes what the receiver knows now.
func (s *Sender) took(ctx context.Context, m []Alert) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem != "" {
		s.opts.Log.InfoContext(ctx, "the webhook of alerts takes messages again")
	}
	s.problem = ""
	if !s.leads {
		return
	}
	for _, a := range m {
		switch now, fires := s.firing[a.Key]; {
		case !a.ended.IsZero():
			delete(s.told, a.Key)
		case fires:
			s.told[a.Key] = now
		default: // it ended while it was told of
			a.ended = time.Now()
			s.told[a.Key] = a
		}
	}
}

// mayKnow notes that the receiver may have heard of what was sent, although it did
// not say so: it must hear of its end too.
func (s *Sender) mayKnow(m []Alert) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range m {
		if !s.leads || !a.ended.IsZero() {
			continue
		}
		a.unsure = true
		if _, fires := s.firing[a.Key]; !fires {
			a.ended = time.Now()
		}
		s.told[a.Key] = a
	}
}

// fail notes why a message was not taken, and logs it where it is another reason.
func (s *Sender) fail(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := reason(err); text != s.problem {
		s.problem = text
		s.opts.Log.WarnContext(ctx, "the webhook of alerts does not take messages: trying on", "url", s.Where(), "problem", text)
	}
}

// reason is what people are told of an error, without the address, which may be
// secret.
func reason(err error) string {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		if wrapped.Timeout() {
			return fmt.Sprintf("no answer within %v", sendWithin)
		}
		return wrapped.Err.Error()
	}
	return err.Error()
}
