package bucket_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
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

const payments = `service: payments
owner: team-payments
buckets:
  - name: writes
    match: {procedure: charges.v1.Charges/*}
    limit: {rps: 300}
    candidate: {rps: 200}
    behavior: deny
  - name: reads
    match: {procedure: reads.v1.Reads/*}
    limit: {rps: 100}
    behavior: allow
  - name: each
    match: {caller: "*"}
    per: caller
    limit: {rps: 1000}
    behavior: deny
  - name: regional
    match: {procedure: regional.v1.Regional/*}
    scope: region
    limit: {rps: 50, regions: {eu: 80}}
    behavior: deny
`

// Who looks.
var (
	editor   = access.Person{Name: "ed", Level: access.Editor, By: "session", Session: "2", Services: []string{"payments"}}
	stranger = access.Person{Name: "sam", Level: access.Editor, By: "session", Session: "3", Services: []string{"search"}}
	viewer   = access.Person{Name: "vi", Level: access.Viewer, By: "session", Session: "4"}
)

// shop is a fleet of two hosts in two zones under even load.
type shop struct {
	*rolestest.Plane
	t     testing.TB
	pause func() // ends the load
}

// open starts the fleet, and sends 400 requests a second of checkout and 100 of
// price-bot to writes, and 150 to reads, until the test ends.
func open(t testing.TB, limits string) *shop {
	p := rolestest.NewPlane(t, limits)
	p.Controller()
	p.Aggregator("a", "eu-1", "eu")
	p.Aggregator("b", "us-1", "us")
	hosts := []*limiter.Limiter{p.Host("h1", "eu-1", "eu", "payments", "a"), p.Host("h2", "us-1", "us", "payments", "b")}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			host := hosts[n%2].Service("payments")
			for range 8 {
				host.Decide("checkout", "charges.v1.Charges/Create")
			}
			for range 2 {
				host.Decide("price-bot", "charges.v1.Charges/Create")
			}
			for range 3 {
				host.Decide("web", "reads.v1.Reads/List")
			}
		}
	}()
	pause := sync.OnceFunc(func() { close(stop); <-ended })
	t.Cleanup(pause)
	time.Sleep(20 * time.Second)
	return &shop{p, t, pause}
}

// get asks for a page of a bucket, once all that happens at this moment has.
func (s *shop) get(who access.Person, target string) (status int, body, text string) {
	s.t.Helper()
	synctest.Wait()
	r, body := pagetest.Get(s.t, s.Pages(), who, target, false)
	return r.StatusCode, body, plain(body)
}

// post hands in a form, and returns where that leads.
func (s *shop) post(who access.Person, target string, form url.Values) (r *http.Response, body, text string) {
	s.t.Helper()
	synctest.Wait()
	r, body = pagetest.Post(s.t, s.Pages(), who, target, form)
	return r, body, plain(body)
}

func (s *shop) config() grlv1connect.ConfigServiceClient {
	return grlv1connect.NewConfigServiceClient(s.Network.Client(s.t), "http://controller")
}

func (s *shop) view() grlv1connect.ViewServiceClient {
	return grlv1connect.NewViewServiceClient(s.Network.Client(s.t), "http://controller")
}

// rows are what the API says of a bucket, once all that happens at this moment has.
func (s *shop) rows(bucket string) []*grlv1.BucketView {
	s.t.Helper()
	synctest.Wait()
	got, err := s.view().ListBuckets(s.t.Context(), &grlv1.ListBucketsRequest{Service: "payments"})
	if err != nil {
		s.t.Fatal(err)
	}
	var out []*grlv1.BucketView
	for _, b := range got.GetBuckets() {
		if b.GetBucket() == bucket && b.GetCapId() == "" {
			out = append(out, b)
		}
	}
	return out
}

// head is the present revision.
func (s *shop) head() uint64 {
	s.t.Helper()
	got, err := s.config().GetConfiguration(s.t.Context(), &grlv1.GetConfigurationRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	return got.GetRevision().GetNumber()
}

var tags = regexp.MustCompile(`<[^>]*>`)

func plain(body string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(body, " "))), " ")
}

// wants reports each text that is missing.
func wants(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			_, text, _ = strings.Cut(text, "Trying again every 2 s. Try now ") // the frame
			t.Errorf("the page does not say %q: %s", p, text)
		}
	}
}
