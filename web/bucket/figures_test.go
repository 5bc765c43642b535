package bucket_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
)

// numbersOf is what the page gives to scripts.
type numbersOf struct {
	Times []int64
	Lines []struct {
		Name, Unit string
		Values     []*float64
	}
}

func (n *numbersOf) line(t testing.TB, name string) []*float64 {
	t.Helper()
	for _, l := range n.Lines {
		if l.Name == name {
			return l.Values
		}
	}
	t.Fatalf("no line %q", name)
	return nil
}

// TestCurves recomputes the lines of the chart from the minutes of the API.
func TestCurves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		time.Sleep(6 * time.Minute)
		_, body, _ := s.get(viewer, "/bucket/series.json?name=payments/writes&range=1h")
		var n numbersOf
		if err := json.Unmarshal([]byte(body), &n); err != nil {
			t.Fatal(err)
		}
		if len(n.Times) != 61 {
			t.Fatalf("%d times, want an hour of minutes and now", len(n.Times))
		}
		history, err := s.view().GetHistory(t.Context(), &grlv1.GetHistoryRequest{Bucket: "payments/writes"})
		if err != nil {
			t.Fatal(err)
		}
		minutes := make(map[int64]*grlv1.Minute)
		for _, m := range history.GetMinutes() {
			minutes[m.GetStartMs()/1000] = m
		}
		offered, admitted, limit := n.line(t, "offered"), n.line(t, "admitted"), n.line(t, "limit")
		seen := 0
		for i, at := range n.Times[:60] {
			m := minutes[at]
			if m == nil {
				if offered[i] != nil && i < 58 {
					t.Errorf("minute %d: offered %v, though nothing is known", i, *offered[i])
				}
				continue
			}
			seen++
			if offered[i] == nil || math.Abs(*offered[i]-float64(m.GetOffered())/60) > 0.01 ||
				math.Abs(*admitted[i]-float64(m.GetOffered()-m.GetDropped())/60) > 0.01 {
				t.Errorf("minute %d: offered %v, admitted %v, want %d and %d less a minute", i, *offered[i], *admitted[i], m.GetOffered(), m.GetDropped())
			}
			if limit[i] == nil || *limit[i] != 300 {
				t.Errorf("minute %d: limit %v, want 300", i, limit[i])
			}
		}
		if seen < 4 {
			t.Fatalf("%d minutes compared, want at least 4", seen)
		}
		row := s.rows("payments/writes")[0]
		if got := *offered[60]; math.Abs(got-row.GetOfferedRps()) > 0.05*row.GetOfferedRps() {
			t.Errorf("the last point is %v, want what is live, %v", got, row.GetOfferedRps())
		}

		_, sheet, _ := s.get(viewer, "/bucket/series.csv?name=payments/writes&range=1h")
		rows, err := csv.NewReader(strings.NewReader(sheet)).ReadAll()
		if err != nil || len(rows) != 62 {
			t.Fatalf("%d rows of CSV, %v, want 61 and a head", len(rows), err)
		}
		if got := strings.Join(rows[0], " "); got != "time offered_rps admitted_rps limit_rps candidate_rps drop_ratio_percent" {
			t.Errorf("head %q", got)
		}
		if got, _ := strconv.ParseFloat(rows[60][1], 64); math.Abs(got-*offered[59]) > 0.01 {
			t.Errorf("the sheet says %v where the chart says %v", got, *offered[59])
		}
	})
}

// TestZones: each host gets every second request, so each zone half of them.
func TestZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		for by, names := range map[string][]string{"": {"eu-1", "us-1"}, "&by=region": {"eu", "us"}} {
			_, body, _ := s.get(viewer, "/bucket?name=payments/writes"+by)
			half := s.rows("payments/writes")[0].GetOfferedRps() / 2
			for _, name := range names {
				got, err := strconv.ParseFloat(rowOf(t, body, "zones", name)[0], 64)
				if err != nil || math.Abs(got-half) > 0.05*half {
					t.Errorf("%s: offered %v, want about %v", name, got, half)
				}
			}
		}
	})
}

// TestFlags: a change and a cap are flags of the chart, with a list.
func TestFlags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		time.Sleep(3 * time.Minute)
		base := s.head()
		if r, _, _ := s.post(editor, "/bucket", change(base, "limit", "400")); r.StatusCode != http.StatusSeeOther {
			t.Fatalf("status %d", r.StatusCode)
		}
		time.Sleep(time.Minute)
		incident := grlv1connect.NewIncidentServiceClient(s.Network.Client(t), "http://controller")
		if _, err := incident.PlaceCap(t.Context(), &grlv1.PlaceCapRequest{
			Service: "payments", Caller: "price-bot", Gate: &grlv1.PlaceCapRequest_Rps{Rps: 20}, DurationMs: 600_000, Reason: "flood",
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_, body, text := s.get(viewer, "/bucket?name=payments/writes&range=1h")
		wants(t, text, fmt.Sprintf("r%d limit 300 → 400 ed", base+1), "Cap price-bot at 20.0 rps until", "price-bot 20.0 rps")
		if !strings.Contains(body, "chart__flag--cap") {
			t.Error("the chart has no flag of the cap")
		}
	})
}

// TestTheWeekOfAnEffect recomputes from the minutes of the API what another limit
// would have dropped.
func TestTheWeekOfAnEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		time.Sleep(10 * time.Minute)
		s.pause()
		time.Sleep(3 * time.Minute) // until all minutes were written
		_, _, text := s.post(editor, "/bucket/effect", change(s.head(), "limit", "450"))
		history, err := s.view().GetHistory(t.Context(), &grlv1.GetHistoryRequest{Bucket: "payments/writes"})
		if err != nil {
			t.Fatal(err)
		}
		replay := func(limit float64) (share string, over int, peak float64) {
			var offered, dropped float64
			for _, m := range history.GetMinutes() {
				rps := float64(m.GetOffered()) / 60
				offered += rps
				dropped += math.Max(0, rps-limit)
				peak = math.Max(peak, rps)
				if rps > limit {
					over++
				}
			}
			return format.Share(dropped / offered), over, peak
		}
		share, over, peak := replay(450)
		was, wasOver, _ := replay(300)
		if over < 5 {
			t.Fatalf("%d minutes over 450 rps, want at least 5 to compare", over)
		}
		_, known, _ := strings.Cut(text, "of the ")
		known, _, _ = strings.Cut(known, " that are known.")
		var minutes int
		if _, err := fmt.Sscanf(known, "%d min", &minutes); err != nil || minutes < len(history.GetMinutes()) || minutes > len(history.GetMinutes())+3 {
			t.Errorf("%q are known, want those of the history and up to 3 in which nobody called", known)
		}
		wants(t, text, "Would drop nothing now, and "+share+" of the "+known+" that are known.", "Dropped, "+known+" that are known "+was+" → "+share,
			fmt.Sprintf("Limit over peak of "+known+" −%.0f%% → −%.0f%%", 100*(1-300/peak), 100*(1-450/peak)))
		if over != wasOver {
			wants(t, text, fmt.Sprintf("Minutes over the limit %d → %d", wasOver, over))
		} else {
			wants(t, text, fmt.Sprintf("Minutes over the limit %d", over))
		}
	})
}
