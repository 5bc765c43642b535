package explain_test

import (
	"encoding/json"
	"fmt"
	"html"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/limiter/httplimit"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/rolestest"
	"grl/web/pagetest"
)

const limits = `service: payments
owner: team-payments
exempt:
  - {caller: health}
buckets:
  - name: checkout-charge
    match: {caller: checkout, procedure: charges.v1.Charges/Create}
    limit: {rps: 1000}
    behavior: deny
  - name: each-caller
    match: {caller: "*"}
    per: caller
    limit: {rps: 100}
    behavior: allow
  - name: writes
    match: {procedure: charges.v1.Charges/*}
    limit: {rps: 300}
    behavior: deny
  - name: everything
    limit: {rps: 5000}
    behavior: deny
`

// shop is a fleet of one host under even load.
type shop struct {
	*rolestest.Plane
	t testing.TB
}

// open starts the fleet, and sends 400 requests a second of checkout until the
// test ends.
func open(t testing.TB, limits string) *shop { return openAt(t, limits, "") }

// openAt is open with a public URL of the dashboard; "": none.
func openAt(t testing.TB, limits, publicURL string) *shop {
	p := rolestest.NewPlane(t, limits)
	p.PublicURL = publicURL
	p.Controller()
	p.Aggregator("a", "z1", "r1")
	host := p.Host("h", "z1", "r1", "payments", "a")
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Second / 400):
				host.Service("payments").Decide("checkout", "charges.v1.Charges/Create")
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-ended })
	time.Sleep(20 * time.Second)
	return &shop{p, t}
}

// ask returns the page that answers a question, as text without markup too.
func (s *shop) ask(query string) (status int, body, text string) {
	r, body := pagetest.Get(s.t, s.Pages(), pagetest.Admin, "/explain?"+query, false)
	return r.StatusCode, body, plain(body)
}

var tags = regexp.MustCompile(`<[^>]*>`)

func plain(body string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(body, " "))), " ")
}

// explained is what the API says of checkout's charges.
func (s *shop) explained(caller string) *grlv1.ExplainResponse {
	s.t.Helper()
	view := grlv1connect.NewViewServiceClient(s.Network.Client(s.t), "http://controller")
	a, err := view.Explain(s.t.Context(), &grlv1.ExplainRequest{Service: "payments", Caller: caller, Procedure: "charges.v1.Charges/Create"})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// compare returns the page of checkout's charges, and what the API says at the same
// moment: the same before and after it.
func (s *shop) compare() (body, text string, api *grlv1.ExplainResponse) {
	s.t.Helper()
	for range 100 {
		synctest.Wait()
		before := s.explained("checkout")
		_, body, text := s.ask(charges)
		if api := s.explained("checkout"); figures(before) == figures(api) {
			return body, text, api
		}
		time.Sleep(7 * time.Millisecond)
	}
	s.t.Fatal("the figures never stand still")
	return "", "", nil
}

func figures(a *grlv1.ExplainResponse) string {
	text := ""
	for _, c := range a.GetCells() {
		text += fmt.Sprint(c.GetBucket().GetOfferedRps(), c.GetBucket().GetDropRatio(), " ")
	}
	return text
}

const charges = "service=payments&caller=checkout&procedure=charges.v1.Charges/Create"

func TestTheWalkOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, limits)
		body, text, api := s.compare()
		// What is admitted is what passes each enforced bucket, one after the other.
		passes, shadow, offered := 1.0, 0.0, make(map[string]string)
		for _, c := range api.GetCells() {
			offered[c.GetBucket().GetBucket()] = fmt.Sprintf("%.0f", c.GetBucket().GetOfferedRps())
			if c.GetBucket().GetBehavior() == grlv1.Behavior_BEHAVIOR_DENY {
				passes *= 1 - c.GetBucket().GetDropRatio()
			} else {
				shadow = c.GetBucket().GetDropRatio()
			}
		}
		if math.Abs(passes-0.75) > 0.01 || math.Abs(shadow-0.75) > 0.01 {
			t.Fatalf("the API admits %v and would drop %v, want 0.75 of 400 rps each, by limits of 300 and 100", passes, shadow)
		}
		for _, want := range []string{
			"Caller is checkout by a header",
			"Exempt list nothing that payments exempts no match",
			"Kill switch dropping is not disabled off",
			"Caps none is running no match",
			"payments/ checkout-charge caller and procedure · " + offered["payments/checkout-charge"] + " of 1,000 rps 100% go on",
			"payments/ each-caller for checkout each caller, shadow · " + offered["payments/each-caller"] + " of 100 rps · directive ",
			fmt.Sprintf("%.1f%% virtual", 100*shadow),
			"payments/ writes procedure prefix · " + offered["payments/writes"] + " of 300 rps",
			fmt.Sprintf("%.1f%% dropped", 100*(1-passes)),
			"payments/ everything service · " + offered["payments/everything"] + " of 5,000 rps · counting only what came this far 100% go on",
			fmt.Sprintf("%.1f%% of these requests are admitted. %.1f%% are dropped by payments/writes, because %s rps are offered and 300 are allowed.", 100*passes, 100*(1-passes), offered["payments/writes"]),
			"Ask team-payments for a higher limit",
			"grl explain --service payments \\ --caller checkout \\ --procedure charges.v1.Charges/Create",
			"Open bucket", "Cap checkout",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in:\n%s", want, text)
			}
		}
		if !strings.Contains(body, `href="/bucket?name=payments%2Fwrites"`) {
			t.Error("no link to the bucket")
		}
	})
}

// What the page shows as the caller's answer is what a caller gets: with a link to
// this page where the controller has a public URL, and without one elsewhere.
func TestTheReplyIsTheRealOne(t *testing.T) {
	for name, publicURL := range map[string]string{"no public URL": "", "a public URL": "https://grl.example.com"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := openAt(t, limits, publicURL)
				_, body, text := s.ask(charges)
				_, shown, _ := strings.Cut(body, `aria-label="Answer to a dropped request">`)
				shown, _, _ = strings.Cut(html.UnescapeString(shown), "</pre>")
				head, content, _ := strings.Cut(shown, "\n\n")
				var got map[string]any
				if err := json.Unmarshal([]byte(content), &got); err != nil {
					t.Fatalf("%v in %s", err, content)
				}
				want, contentType := refusal(t, publicURL)
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("shown %v, a caller gets %v", got, want)
				}
				if !strings.HasPrefix(head, "HTTP/1.1 429 Too Many Requests\nRetry-After: 1 to 3\nContent-Type: "+contentType) {
					t.Errorf("shown %q", head)
				}
				if says := strings.Contains(text, "It has no link to this page"); says != (publicURL == "") {
					t.Errorf("says that there is no link: %v", says)
				}
				if publicURL != "" {
					s.leadsBack(got["explain"])
				}
			})
		})
	}
}

// refusal returns what a caller gets who is dropped, and as what type.
func refusal(t *testing.T, publicURL string) (body map[string]any, contentType string) {
	t.Helper()
	w := httptest.NewRecorder()
	httplimit.WriteDrop(w, httptest.NewRequest(http.MethodGet, "/", nil), httplimit.Drop{
		Decision: limiter.Decision{
			Dropped: true,
			Bucket:  &limiter.Bucket{Service: "payments", Name: "writes"}, Service: &limiter.Service{Owner: "team-payments"},
		},
		Caller: "checkout", Procedure: "charges.v1.Charges/Create", PublicURL: publicURL,
	})
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	return body, w.Header().Get("Content-Type")
}

// leadsBack fails unless the link of a refusal leads to the same walk.
func (s *shop) leadsBack(explain any) {
	s.t.Helper()
	address, ok := explain.(string)
	if !ok {
		s.t.Fatalf("the link is %v", explain)
	}
	link, err := url.Parse(address)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, _, text := s.ask(link.RawQuery); !strings.Contains(text, "are dropped by payments/writes") {
		s.t.Errorf("%s leads to:\n%s", link, text)
	}
}

func TestQuestions(t *testing.T) {
	const hostile = `<script>alert("1")</script>'&` + "\u202e"
	tests := []struct {
		name, query string
		status      int
		want        []string
	}{
		{"nothing is asked", "", 200, []string{"Say which request"}},
		{"no service", "service=&caller=checkout", 200, []string{"A service is needed: the one that is called."}},
		{"exempt", "service=payments&caller=health", 200, []string{"payments exempts such requests", "All of these requests are admitted: payments exempts them.", "nothing drops these requests now"}},
		{"each caller has a cell", "service=payments&caller=search", 200, []string{"each-caller for search", "0 of 100 rps", "All of these requests are admitted: every limit on them holds"}},
		{"no caller", "service=payments", 200, []string{"No caller is named such requests count as _unknown"}},
		{"verified", charges + "&verified=yes", 200, []string{"proved by a client certificate verified"}},
		{"in a zone", charges + "&zone=z1", 200, []string{"dropped by payments/writes", "--zone z1"}},
		{"unknown zone", charges + "&zone=nowhere", 404, []string{`No node of "nowhere" is in the tree.`}},
		{"unknown service", "service=chekout", 200, []string{"All of these requests are admitted: no limit and no cap is known of chekout."}},
		{"no name", "service=" + url.QueryEscape(hostile), 422, []string{"is no name"}},
		{"hostile", "service=payments&caller=" + url.QueryEscape(hostile) + "&procedure=" + url.QueryEscape(hostile), 200, []string{`Caller is <script>alert("1")</script>'&` + "\ufffd", `--caller '<script>alert("1")</script>'\''&` + "\ufffd'"}},
		{"too long", "service=payments&caller=" + strings.Repeat("c", 1000), 422, []string{"300 bytes, at most 256"}},
		{"a bucket", "bucket=payments/writes", 200, []string{"dropped by payments/writes", "--procedure 'charges.v1.Charges/*'"}},
		{"a bucket with a cell for each caller", "bucket=payments/each-caller", 200, []string{"Caller is checkout", "% virtual"}},
		{"no such bucket", "bucket=payments/gone", 200, []string{"There is no bucket “payments/gone”", "Search the buckets"}},
		{"a hostile bucket", "bucket=" + url.QueryEscape(hostile), 200, []string{"There is no bucket “<script>alert"}},
	}
	synctest.Test(t, func(t *testing.T) {
		s := open(t, limits)
		for _, tt := range tests {
			status, body, text := s.ask(tt.query)
			if status != tt.status {
				t.Errorf("%s: status %d, want %d", tt.name, status, tt.status)
			}
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s: no %q in:\n%s", tt.name, want, text)
				}
			}
			if strings.Contains(body, "<script>") || strings.Contains(body, " style=") {
				t.Errorf("%s: a name became markup", tt.name)
			}
		}
	})
}

func TestCapsAndTheSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, limits)
		if _, err := s.Incident().PlaceCap(t.Context(), &grlv1.PlaceCapRequest{
			Service: "payments", Caller: "checkout", Gate: &grlv1.PlaceCapRequest_Rps{Rps: 100}, DurationMs: time.Hour.Milliseconds(), Reason: "retry storm",
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		_, text, api := s.compare()
		b := api.GetCells()[0].GetBucket()
		if b.GetCapId() == "" || math.Abs(b.GetDropRatio()-0.75) > 0.01 {
			t.Fatalf("the first cell is %v, want a cap that drops 0.75", b)
		}
		for _, want := range []string{
			fmt.Sprintf("Cap by admin caller · retry storm · ends in 59:50 · %.0f of 100 rps", b.GetOfferedRps()),
			fmt.Sprintf("%.1f%% are dropped by the cap by admin, because %.0f rps are offered and 100 are allowed.", 100*b.GetDropRatio(), b.GetOfferedRps()),
			`"detail": "payments is capped by admin: retry storm"`, "Open caps",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in:\n%s", want, text)
			}
		}
		// Of what passes the cap, nothing is above the limits that follow.
		if strings.Contains(text, "dropped by payments/writes") {
			t.Errorf("the bucket behind the cap drops too:\n%s", text)
		}
		if _, err := s.Incident().Disable(t.Context(), &grlv1.DisableRequest{Service: "payments", Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		_, _, text = s.ask(charges)
		for _, want := range []string{"Dropping is disabled", "All of these requests are admitted: dropping is disabled.", "% virtual"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in:\n%s", want, text)
			}
		}
	})
}

// Who may not cap is not shown how; and the region that updates is part of the
// page.
func TestViewersAndFragments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, limits)
		synctest.Wait() // what is reported and decided at this very moment is there
		viewer := access.Person{Name: "vera", Level: access.Viewer, By: "session", Session: "1"}
		_, body := pagetest.Get(t, s.Pages(), viewer, "/explain?"+charges, false)
		if strings.Contains(body, "/caps?") {
			t.Error("a viewer is shown how to cap")
		}
		editor := access.Person{Name: "emma", Level: access.Editor, By: "session", Session: "2", Services: []string{"payments"}}
		if _, body := pagetest.Get(t, s.Pages(), editor, "/explain?"+charges, false); !strings.Contains(body, "/caps?") {
			t.Error("an editor of the service is not shown how to cap")
		}
		editor.Services = []string{"search"}
		if _, body := pagetest.Get(t, s.Pages(), editor, "/explain?"+charges, false); strings.Contains(body, "/caps?") {
			t.Error("an editor of another service is shown how to cap")
		}
		_, fragment := pagetest.Get(t, s.Pages(), viewer, "/explain?"+charges, true)
		if strings.Contains(fragment, "<html") || !strings.Contains(body, fragment) {
			t.Errorf("the page does not contain its fragment:\n%s", fragment)
		}
		if len(body) > 300_000 {
			t.Errorf("%d bytes", len(body))
		}
	})
}
