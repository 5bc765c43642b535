package buckets_test

import (
	"html"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/proto/access"
	"grl/roles/rolestest"
	"grl/web/pagetest"
)

const limits = `service: payments
owner: team-payments
buckets:
  - name: each
    match: {caller: "*"}
    per: caller
    limit: {rps: 100}
    behavior: allow
  - name: everything
    limit: {rps: 300}
    candidate: {rps: 200}
    behavior: deny
`

var tags = regexp.MustCompile(`<[^>]*>`)

// lines returns the rows of the table without markup, by the id of their element.
func lines(body string) map[string]string {
	out := make(map[string]string)
	for _, part := range strings.Split(body, `<tr id="`)[1:] {
		id, rest, _ := strings.Cut(part, `"`)
		row, _, _ := strings.Cut(rest, "</tr>")
		_, row, _ = strings.Cut(row, ">")
		out[id] = strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(row, " "))), " ")
	}
	return out
}

// The rows say of each cell what the API says of it at the same moment.
func TestRowsAreThoseOfTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rolestest.NewPlane(t, limits)
		p.Controller()
		p.Aggregator("a", "z1", "r1")
		host := p.Host("h", "z1", "r1", "payments", "a")
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Second / 400):
					host.Service("payments").Decide([]string{"web", "web", "web", "batch"}[i%4], "Write")
				}
			}
		}()
		t.Cleanup(func() { close(stop); <-ended })
		time.Sleep(30 * time.Second)
		synctest.Wait()

		_, body := pagetest.Get(t, p.Pages(), pagetest.Admin, "/buckets?sort=name", true)
		rows := lines(body)
		views := p.Buckets()
		if len(rows) != len(views) || len(views) != 3 {
			t.Fatalf("%d rows of %d cells", len(rows), len(views))
		}
		for _, b := range views {
			service, name, _ := strings.Cut(b.GetBucket(), "/")
			begin := service + "/ " + name
			if b.GetCaller() != "" {
				begin += " for " + b.GetCaller()
			}
			row := ""
			for _, r := range rows {
				if strings.HasPrefix(r, begin+" ") {
					row = r
				}
			}
			_, figures, _ := strings.Cut(row, "global ")
			f := strings.Fields(figures)
			virtual := b.GetShadowDroppedRps() + b.GetCandidateDroppedRps()
			ratio := b.GetDropRatio()
			if b.GetCaller() != "" {
				ratio = 0 // in shadow nothing is dropped
			}
			want := []float64{b.GetOfferedRps(), b.GetAdmittedRps(), b.GetLimitRps(), 100 * ratio, virtual}
			if len(f) != len(want)+1 || f[len(want)] != "team-payments" {
				t.Fatalf("row of %s: %q", begin, row)
			}
			for i, w := range want {
				got, err := strconv.ParseFloat(strings.Trim(strings.ReplaceAll(f[i], ",", ""), "%"), 64)
				if err != nil || math.Abs(got-w) > 0.03*w+0.5 {
					t.Errorf("row of %s: figure %d is %s, the API says %v", begin, i, f[i], w)
				}
			}
		}
		if sum := p.Buckets()[2]; sum.GetDroppedRps() < 90 || sum.GetCandidateDroppedRps() < 90 {
			t.Errorf("%v: want 100 rps dropped and 100 more by the candidate", sum)
		}
	})
}

// Sparklines have the means over 20 minutes of what the history has.
func TestSparklinesAreTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rolestest.NewPlane(t, limits)
		p.Controller()
		p.Aggregator("a", "z1", "r1")
		host := p.Host("h", "z1", "r1", "payments", "a")
		time.Sleep(20 * time.Minute)
		for _, rps := range []int{2, 6} {
			for range 20 * 60 * rps {
				time.Sleep(time.Second / time.Duration(rps))
				host.Service("payments").Decide("web", "Write")
			}
		}
		time.Sleep(3 * time.Minute) // all is reported, and its minute written
		synctest.Wait()

		means := make(map[int64]float64) // start of 20 minutes → requests per second
		for _, m := range p.History("payments/everything") {
			means[m.GetStartMs()/(20*60_000)] += float64(m.GetOffered()) / (20 * 60)
		}
		high := 0.0
		for _, rps := range means {
			high = max(high, rps)
		}
		if math.Abs(high-6) > 0.2 {
			t.Fatalf("the history has at most %v rps over 20 minutes, want 6", high)
		}
		_, body := pagetest.Get(t, p.Pages(), pagetest.Admin, "/buckets?q=everything", true)
		m := regexp.MustCompile(`Offered load of the last 24 hours, [0-9.]+ to ([0-9.]+) rps`).FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("no sparkline:\n%s", body)
		}
		if got, err := strconv.ParseFloat(m[1], 64); err != nil || math.Abs(got-high) > 0.02 {
			t.Errorf("the sparkline reaches %s rps, the history %v", m[1], high)
		}
	})
}

// Who may not change limits is not led to the form for a new bucket; the region
// that updates is part of the page.
func TestViewersAndFragments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rolestest.NewPlane(t, limits)
		p.Controller()
		viewer := access.Person{Name: "vera", Level: access.Viewer, By: "session", Session: "1"}
		_, body := pagetest.Get(t, p.Pages(), viewer, "/buckets", false)
		if strings.Contains(body, "/bucket/new") {
			t.Error("a viewer is led to the form for a new bucket")
		}
		if _, fragment := pagetest.Get(t, p.Pages(), viewer, "/buckets", true); !strings.Contains(body, fragment) {
			t.Error("the page does not contain its fragment")
		}
		if _, body := pagetest.Get(t, p.Pages(), pagetest.Admin, "/buckets", false); !strings.Contains(body, "/bucket/new") {
			t.Error("an admin is not led to the form for a new bucket")
		}
	})
}
