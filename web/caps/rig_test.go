package caps_test

import (
	"context"
	"html"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/rolestest"
	"grl/web/pagetest"
)

// limits are a bucket that counts each caller, and one that all calls pass.
const limits = `service: shop
owner: team-shop
buckets:
  - name: each
    match: {caller: "*"}
    per: caller
    limit: {rps: 100000}
    behavior: deny
  - name: all
    limit: {rps: 800}
    behavior: deny
`

const others = `service: search
owner: team-search
buckets:
  - name: all
    limit: {rps: 1000}
    behavior: deny
`

var (
	editor = access.Person{Name: "ed", Level: access.Editor, Owners: []string{"team-shop"}, By: "session", Session: "1"}
	viewer = access.Person{Name: "vi", Level: access.Viewer, By: "session", Session: "1"}
	admin  = pagetest.Admin
)

// town is a fleet of two hosts in two zones, under even load: of bot 400 requests
// a second, of web 100, at each. It is asked once all that happens at the moment
// has happened.
type town struct {
	*rolestest.Plane
	t testing.TB

	mu   sync.Mutex     // guards sent and cut
	sent map[string]int // caller → requests
	cut  map[string]int // caller → dropped
}

func open(t testing.TB) *town {
	t.Helper()
	w := &town{Plane: rolestest.NewPlane(t, limits, others), t: t, sent: map[string]int{}, cut: map[string]int{}}
	w.Controller()
	ctx, cancel := context.WithCancel(context.Background())
	var senders sync.WaitGroup
	t.Cleanup(func() { cancel(); senders.Wait() })
	for _, zone := range []string{"z1", "z2"} {
		w.Aggregator("a-"+zone, zone, "r1")
		l := w.Host("h-"+zone, zone, "r1", "shop", "a-"+zone)
		senders.Go(func() { w.send(ctx, l, "bot", 400) })
		senders.Go(func() { w.send(ctx, l, "web", 100) })
	}
	time.Sleep(30 * time.Second)
	return w
}

func (w *town) send(ctx context.Context, l *limiter.Limiter, caller string, rps int) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second / time.Duration(rps)):
		}
		dropped := l.Service("shop").Decide(caller, "shop.Shop/Buy").Dropped
		w.mu.Lock()
		w.sent[caller]++
		if dropped {
			w.cut[caller]++
		}
		w.mu.Unlock()
	}
}

// admitted returns the requests per second of a caller that pass in the next d.
func (w *town) admitted(caller string, d time.Duration) float64 {
	passed := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.sent[caller] - w.cut[caller]
	}
	before := passed()
	time.Sleep(d)
	return float64(passed()-before) / d.Seconds()
}

// offered is what the API says that a caller sends now.
func (w *town) offered(caller string) (rps float64) {
	synctest.Wait()
	for _, b := range w.Buckets() {
		if b.GetBucket() == "shop/each" && b.GetCaller() == caller {
			rps += b.GetOfferedRps()
		}
	}
	return rps
}

// holding counts the hosts that hold what was placed last, by the tree.
func (w *town) holding() (holding, clients int) {
	synctest.Wait()
	f := w.Fleet()
	for _, n := range f.GetNodes() {
		if n.GetRole() != grlv1.Role_ROLE_CLIENT {
			continue
		}
		clients++
		if n.GetConfigSerial() >= f.GetSerial() {
			holding++
		}
	}
	return holding, clients
}

func (w *town) caps() []*grlv1.CapView {
	w.t.Helper()
	list, err := w.Incident().ListCaps(w.t.Context(), &grlv1.ListCapsRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.GetCaps()
}

// history returns the minutes of a cell since the beginning.
func (w *town) history(bucket, caller string) []*grlv1.Minute {
	w.t.Helper()
	view := grlv1connect.NewViewServiceClient(w.Network.Client(w.t), "http://controller")
	r, err := view.GetHistory(w.t.Context(), &grlv1.GetHistoryRequest{Bucket: bucket, Caller: caller, FromMs: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	return r.GetMinutes()
}

// get returns a page, and its text.
func (w *town) get(who access.Person, target string, fragment bool) (body, text string) {
	w.t.Helper()
	synctest.Wait()
	r, body := pagetest.Get(w.t, w.Pages(), who, target, fragment)
	if r.StatusCode != http.StatusOK {
		w.t.Fatalf("GET %s = %d: %s", target, r.StatusCode, words(body))
	}
	return body, words(body)
}

// post hands in a form and returns the answer, and where it leads.
func (w *town) post(who access.Person, target string, form url.Values) (status int, body, location string) {
	w.t.Helper()
	synctest.Wait()
	r, body := pagetest.Post(w.t, w.Pages(), who, target, form)
	return r.StatusCode, body, r.Header.Get("Location")
}

// must is post of what is done, and returns the page that it leads to.
func (w *town) must(who access.Person, target string, form url.Values) (location, body, text string) {
	w.t.Helper()
	status, body, location := w.post(who, target, form)
	if status != http.StatusSeeOther {
		w.t.Fatalf("POST %s = %d: %s", target, status, words(body))
	}
	body, text = w.get(who, location, false)
	return location, body, text
}

// effect returns what the page says of a form while one types.
func (w *town) effect(who access.Person, form url.Values) (body, text string) {
	w.t.Helper()
	r, body := w.fragment(who, form)
	if r.StatusCode != http.StatusOK {
		w.t.Fatalf("effect = %d: %s", r.StatusCode, body)
	}
	return body, words(body)
}

func (w *town) fragment(who access.Person, form url.Values) (*http.Response, string) {
	w.t.Helper()
	return pagetest.Post(w.t, asHTMX(w.Pages()), who, "/caps/effect", form)
}

// asHTMX sends requests as htmx does.
func asHTMX(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("HX-Request", "true")
		next.ServeHTTP(w, r)
	})
}

var (
	tags   = regexp.MustCompile(`(?s)<(script|style|svg|datalist)\b.*?</(script|style|svg|datalist)>|<[^>]*>`)
	blanks = regexp.MustCompile(`\s+`)
)

// words returns the text of a page, without the frame around it.
func words(body string) string {
	if _, inner, ok := strings.Cut(body, `<main class="main" id="main">`); ok {
		body, _, _ = strings.Cut(inner, "</main>")
	}
	return strings.TrimSpace(blanks.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(body, " ")), " "))
}

// form returns the fields of the form for a cap as a page fills it in: what a
// browser without scripts sends.
func form(t testing.TB, body string) url.Values {
	t.Helper()
	_, rest, _ := strings.Cut(body, `<form class="card__body form" method="post" action="/caps"`)
	rest, _, ok := strings.Cut(rest, "</form>")
	if !ok {
		t.Fatal("no form for a cap")
	}
	out := url.Values{}
	for _, tag := range regexp.MustCompile(`<input[^>]*>`).FindAllString(rest, -1) {
		name, kind := attribute(tag, "name"), attribute(tag, "type")
		if (kind == "radio" || kind == "checkbox") && !strings.Contains(tag, " checked") {
			continue
		}
		out.Set(name, attribute(tag, "value"))
	}
	return out
}

func attribute(tag, name string) string {
	found := regexp.MustCompile(` ` + name + `="([^"]*)"`).FindStringSubmatch(tag)
	if found == nil {
		return ""
	}
	return html.UnescapeString(found[1])
}

// number reads the number before a word in a text.
func number(t testing.TB, text, pattern string) float64 {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %q in %q", pattern, text)
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(found[1], ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func near(t testing.TB, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > want*share {
		t.Errorf("%s = %v, want %v to a share of %v", what, got, want, share)
	}
}

// first reads one event of a stream.
func first(t testing.TB, body io.Reader) string {
	t.Helper()
	var all strings.Builder
	for buffer := make([]byte, 1); ; {
		if _, err := body.Read(buffer); err != nil {
			t.Fatal(err)
		}
		all.Write(buffer)
		if strings.HasSuffix(all.String(), "\n\n") {
			return all.String()
		}
	}
}
