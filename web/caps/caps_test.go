package caps_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/proto/access"
	"grl/web/pagetest"
)

// By a phone, without scripts: the link "Place a cap" of a bucket or an alert is
// one tap, a ready reason the second, "Place cap" the third; another size or time
// makes four. What is done then is in force at every host within a second, and the
// page says who holds it.
func TestPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		body, text := w.get(editor, "/caps?service=shop&caller=bot", false)
		offered := w.offered("bot")
		near(t, "offered now", number(t, text, `Offered now ([\d,.]+) rps`), offered, 0.001)
		f := form(t, body)
		if want := "quarter 200"; f.Get("to") != want || f.Get("rps") != "200" {
			t.Errorf("the form chooses %q and %q, want %q", f.Get("to"), f.Get("rps"), want)
		}
		if want := fmt.Sprintf("%.0f rps offered", offered); !strings.Contains(text, want) {
			t.Errorf("no ready reason %q", want)
		}
		near(t, "share dropped", number(t, text, `Would drop ([\d.]+)% of bot now\.`)/100, (offered-200)/offered, 0.001)
		near(t, "admitted under the cap", number(t, text, `Admitted under the cap ([\d,.]+) rps`), 200, 0.001)
		near(t, "before", w.admitted("bot", time.Second), 800*0.8, 0.1)

		f.Set("ready", fmt.Sprintf("%.0f rps offered", offered)) // the second tap
		began := time.Now()
		location, _, text := w.must(editor, "/caps", f)
		if location != "/caps?placed=1" {
			t.Fatalf("leads to %s", location)
		}
		if !strings.Contains(text, "Capped bot at 200 rps until") {
			t.Errorf("the page does not say what was placed: %s", text)
		}
		time.Sleep(time.Until(began.Add(time.Second)))
		near(t, "admitted from 1 s on", w.admitted("bot", time.Second), 200, 0.1)
		near(t, "admitted of another caller", w.admitted("web", time.Second), 200, 0.01)

		holding, clients := w.holding()
		_, text = w.get(editor, location, true)
		if want := fmt.Sprintf("%d of %d sidecars confirmed.", holding, clients); clients != 2 || holding != 2 || !strings.Contains(text, want) {
			t.Errorf("%d of %d hosts hold it; the page says %s", holding, clients, text)
		}
		_, text = w.get(editor, "/caps", false)
		c := w.caps()[0]
		near(t, "what it drops, in the list", number(t, text, `drops ([\d.]+)% now`)/100, c.GetDroppedRps()/c.GetOfferedRps(), 0.01)
		for _, want := range []string{"bot → shop", "200 rps", "rps offered", "confirmed by 2 of 2 sidecars", "· ed ,", "59:"} {
			if !strings.Contains(text, want) {
				t.Errorf("the list does not say %q: %s", want, text)
			}
		}
	})
}

// A form that is sent twice places one cap: by a double click, by going back, or
// again after an answer that was lost. Changed, it is not taken for the first one.
func TestPlacedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		body, _ := w.get(editor, "/caps?service=shop&caller=bot", false)
		f := form(t, body)
		f.Set("reason", "incident 7")
		first, _, _ := w.must(editor, "/caps", f)
		if again, _, _ := w.must(editor, "/caps", f); again != first || len(w.caps()) != 1 {
			t.Errorf("sent again it leads to %s, not %s; %d caps run", again, first, len(w.caps()))
		}
		f.Set("rps", "150")
		status, body, _ := w.post(editor, "/caps", f)
		if text := words(body); status != http.StatusUnprocessableEntity || !strings.Contains(text, "Not placed: this form placed a cap before") || len(w.caps()) != 1 {
			t.Errorf("changed: %d %s; %d caps run", status, text, len(w.caps()))
		}
		anew := form(t, body)
		if anew.Get("rps") != "150" || anew.Get("request") == f.Get("request") {
			t.Errorf("the form is not one to place another: %v", anew)
		}
		w.must(editor, "/caps", anew)
		_, whole, _ := w.must(editor, "/caps/lift", url.Values{"cap": {"1"}})
		if strings.Index(whole, `id="running"`) > strings.Index(whole, `name="request"`) {
			t.Error("after an act the form comes before what runs")
		}
		f = form(t, body)
		if again, _, _ := w.must(editor, "/caps", f); again != "/caps?placed=2" || len(w.caps()) != 1 {
			t.Errorf("leads to %s; %d caps run", again, len(w.caps()))
		}
		w.must(editor, "/caps/lift", url.Values{"cap": {"2"}})
		if status, _, _ := w.post(editor, "/caps", f); status != http.StatusUnprocessableEntity || len(w.caps()) != 0 {
			t.Errorf("a form whose cap was lifted: %d; %d caps run", status, len(w.caps()))
		}
		// What was refused for another reason keeps its id.
		body, _ = w.get(editor, "/caps?service=shop&caller=bot", false)
		f = form(t, body)
		f.Set("reason", "")
		if status, body, _ = w.post(editor, "/caps", f); status != http.StatusUnprocessableEntity || form(t, body).Get("request") != f.Get("request") {
			t.Errorf("%d: a form that was not placed has another id", status)
		}
	})
}

// Counts of who holds a cap are those of the tree at every moment, also before
// all do.
func TestConfirmedIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		w.must(editor, "/caps", url.Values{"service": {"shop"}, "caller": {"bot"}, "rps": {"100"}, "for": {"1h"}, "reason": {"x"}})
		seen := map[int]bool{}
		for range 40 {
			holding, clients := w.holding()
			seen[holding] = true
			_, text := w.get(editor, "/caps?placed=1", true)
			if want := fmt.Sprintf("%d of %d sidecars confirmed.", holding, clients); !strings.Contains(text, want) {
				t.Errorf("want %q: %s", want, text)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if !seen[0] || !seen[2] {
			t.Errorf("saw %v hosts hold it, want none at first and 2 in the end", seen)
		}
	})
}

// What the page says that a cap would do is what is offered now, against it.
func TestEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		bot, web := w.offered("bot"), w.offered("web")
		near(t, "of bot", bot, 800, 0.05)
		cap := func(caller, to, rps string) url.Values {
			return url.Values{"service": {"shop"}, "caller": {caller}, "to": {to}, "rps": {rps}, "for": {"1h"}}
		}
		tests := []struct {
			name  string
			who   access.Person
			form  url.Values
			share float64 // of offered that it says it drops; below 0: none is said
			lead  string
			agree string // what must be ticked; "": nothing
		}{
			{"half, as it is now", editor, cap("bot", "half 1", ""), (bot - 400) / bot, "of bot now.", ""},
			{"a number", editor, cap("bot", "", "600"), (bot - 600) / bot, "of bot now.", ""},
			{"more than is offered", editor, cap("bot", "", "5000"), -1, "Would drop nothing of bot now.", ""},
			{"nearly all of a busy caller", editor, cap("bot", "", "20"), (bot - 20) / bot, "of bot now.", "Yes, drop 97.5% of bot"},
			{"a block", editor, cap("web", "block", ""), -1, "Would drop all of web now.", "Yes, drop all of web"},
			{"a prefix", editor, cap("we*", "", "50"), (web - 50) / web, "of we* now.", ""},
			{"who sends nothing", editor, cap("ghost", "", "50"), -1, "Would drop nothing now: ghost sends nothing.", ""},
			{"one procedure, which no bucket counts", editor, url.Values{"service": {"shop"}, "procedure": {"shop.Shop/Buy"}, "rps": {"5"}}, -1, "Cannot tell: no bucket counts just these requests.", ""},
			{"without a size", editor, cap("bot", "", ""), -1, "Choose a size, or type a number.", ""},
			{"0", editor, cap("bot", "", "0"), -1, "A cap of 0 rps is Block; choose it.", ""},
			{"without a service", editor, url.Values{}, -1, "Name a service, to see what a cap would do.", ""},
			{"all of a service, by an editor", editor, cap("", "", "50"), -1, "A cap over all of shop needs an admin: name a caller or a procedure.", ""},
			{"all of a service, by an admin", admin, cap("*", "", "50"), (bot + web - 50) / (bot + web), "of shop now.", "Yes, cap everything that shop is sent"},
			{"all of a service, blocked", admin, cap("", "block", ""), -1, "Would drop all of shop now.", "Yes, drop everything that shop is sent"},
			{"a service of others", editor, url.Values{"service": {"search"}, "caller": {"web"}, "rps": {"5"}}, -1, "Editors of search: team-search.", ""},
			{"a service without limits, of nobody", editor, url.Values{"service": {"else"}, "caller": {"web"}, "rps": {"5"}}, -1, "Only editors of else may cap it.", ""},
			{"a name that cannot be one", admin, url.Values{"service": {"a\x00b"}, "caller": {"web"}, "rps": {"5"}}, -1, "Cannot tell: ", ""},
		}
		for _, tt := range tests {
			body, text := w.effect(tt.who, tt.form)
			if !strings.Contains(text, tt.lead) {
				t.Errorf("%s: says %s, want %q", tt.name, text, tt.lead)
			}
			if tt.share >= 0 {
				near(t, tt.name, number(t, text, `Would drop ([\d.]+)% of`)/100, tt.share, 0.01)
			}
			if got := strings.Contains(body, `name="yes"`); got != (tt.agree != "") || !strings.Contains(text, tt.agree) {
				t.Errorf("%s: asks for a yes: %v, want %q: %s", tt.name, got, tt.agree, text)
			}
		}
		if len(w.caps()) != 0 {
			t.Errorf("a preview placed %v", w.caps())
		}
	})
}

// A cap is tried before the buckets: what they would drop under it is computed
// from what they are offered.
func TestEffectOnBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		var offered, limit, ratio float64
		for _, b := range w.Buckets() {
			if b.GetBucket() == "shop/all" {
				offered, limit, ratio = b.GetOfferedRps(), b.GetLimitRps(), b.GetDropRatio()
			}
		}
		if ratio == 0 {
			t.Fatal("shop/all drops nothing: nothing to relieve")
		}
		_, text := w.effect(editor, url.Values{"service": {"shop"}, "caller": {"bot"}, "rps": {"700"}, "for": {"1h"}})
		less := w.offered("bot") - 700
		near(t, "ratio before", number(t, text, `shop/all would drop ([\d.]+)% →`)/100, ratio, 0.01)
		near(t, "ratio after", number(t, text, `shop/all would drop [\d.]+% → ([\d.]+)%`)/100, (offered-less-limit)/(offered-less), 0.01)
	})
}

func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		good := func(change ...string) url.Values {
			f := url.Values{"service": {"shop"}, "caller": {"bot"}, "rps": {"100"}, "for": {"1h"}, "reason": {"INC-1"}}
			for i := 0; i < len(change); i += 2 {
				f.Set(change[i], change[i+1])
			}
			return f
		}
		tests := []struct {
			name   string
			who    access.Person
			form   url.Values
			status int
			says   string
		}{
			{"no reason", editor, good("reason", " "), 422, "A cap needs a reason."},
			{"0 rps", editor, good("rps", "0"), 422, "A cap of 0 rps is Block; choose it."},
			{"25 h", editor, good("until", "25h"), 422, "At most 24 h."},
			{"25 h, as a choice that is none", editor, good("for", "25h"), 422, "At most 24 h."},
			{"no service", editor, good("service", ""), 422, "Name the service that is called."},
			{"two faults", editor, good("service", "", "reason", ""), 422, "Not placed: 2 fields need a change"},
			{"a block without a yes", editor, good("to", "block", "rps", ""), 422, "Not placed: this cap needs a yes"},
			{"a block with a yes to another", editor, good("to", "block", "rps", "", "yes", "caller=web&kind=block&procedure=&service=shop"), 422, "Not placed: this cap needs a yes"},
			{"nearly all without a yes", editor, good("rps", "10"), 422, "Not placed: this cap needs a yes"},
			{"all of a service, by an editor", editor, good("caller", ""), 422, "A cap over all of shop needs an admin"},
			{"all of a service, by an editor who says yes", editor, good("caller", "", "yes", "x"), 403, "A cap over all of shop needs an admin"},
			{"all of a service, without a yes", admin, good("caller", ""), 422, "Not placed: this cap needs a yes"},
			{"a service of others", editor, good("service", "search"), 403, "Editors of search: team-search."},
			{"a viewer", viewer, good(), 403, ""},
			{"a reason that misleads", editor, good("rps", "300", "reason", "a\u202eb"), 422, "Has a control character."},
			{"a pattern that is none", editor, good("caller", "a*b"), 422, ""},
		}
		for _, tt := range tests {
			status, body, _ := w.post(tt.who, "/caps", tt.form)
			if status != tt.status || !strings.Contains(words(body), tt.says) {
				t.Errorf("%s: status %d, want %d and %q: %s", tt.name, status, tt.status, tt.says, words(body))
			}
			if n := len(w.caps()); n != 0 {
				t.Fatalf("%s: %d caps were placed", tt.name, n)
			}
			if status != 422 {
				continue
			}
			kept := form(t, body)
			for _, name := range []string{"service", "caller", "until"} {
				if kept.Get(name) != strings.TrimSpace(tt.form.Get(name)) {
					t.Errorf("%s: %s = %q, want what was typed: %q", tt.name, name, kept.Get(name), tt.form.Get(name))
				}
			}
		}
	})
}

// What must be agreed to is placed once it is ticked.
func TestAgreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		for i, f := range []url.Values{
			{"service": {"shop"}, "caller": {"web"}, "to": {"block"}, "for": {"1h"}, "reason": {"x"}},
			{"service": {"shop"}, "to": {"block"}, "for": {"15m"}, "reason": {"x"}},
		} {
			_, body, _ := w.post(admin, "/caps", f)
			at := strings.Index(body, `name="yes"`)
			if at < 0 {
				t.Fatalf("nothing to tick: %s", words(body))
			}
			again := form(t, body)
			again.Set("yes", attribute(body[strings.LastIndex(body[:at], "<"):][:strings.IndexByte(body[at:], '>')+at-strings.LastIndex(body[:at], "<")], "value"))
			_, _, text := w.must(admin, "/caps", again)
			if want := []string{"Blocked web until", "Blocked shop until"}[i]; !strings.Contains(text, want) {
				t.Errorf("no %q: %s", want, text)
			}
			time.Sleep(time.Second)
			if got := w.admitted("web", time.Second); got != 0 {
				t.Errorf("admits %v rps of web under a block", got)
			}
		}
	})
}

func TestExtendAndLift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		w.must(editor, "/caps", url.Values{"service": {"shop"}, "caller": {"bot"}, "rps": {"100"}, "for": {"15m"}, "reason": {"x"}})
		ends := w.caps()[0].GetEndsAtMs()
		base := fmt.Sprintf("1 %d", ends)
		time.Sleep(10 * time.Minute)

		body, _ := w.get(editor, "/caps", false)
		if !strings.Contains(body, `form="extend-1h" name="cap" value="`+base+`"`) || !strings.Contains(body, `form="lift" name="cap" value="1"`) {
			t.Error("the cap has no buttons")
		}
		location, _, text := w.must(editor, "/caps/extend", url.Values{"cap": {base}, "by": {"1h"}})
		if location != "/caps?extended=1" || !strings.Contains(text, "Extended the cap on bot until") {
			t.Errorf("%s: %s", location, text)
		}
		moved := w.caps()[0].GetEndsAtMs()
		if d := time.Duration(moved-ends) * time.Millisecond; d.Round(time.Second) != time.Hour {
			t.Errorf("moved by %v, want 1 h", d)
		}
		// The same form again, as by a second tap.
		if status, body, _ := w.post(editor, "/caps/extend", url.Values{"cap": {base}, "by": {"1h"}}); status != 422 || !strings.Contains(words(body), "holds until") {
			t.Errorf("sent twice: %d: %s", status, words(body))
		}
		for _, bad := range []url.Values{
			{"cap": {"1 x"}, "by": {"1h"}},
			{"cap": {"1"}, "by": {"1h"}},
			{"cap": {base}, "by": {"-1h"}},
			{"cap": {base}},
			{"cap": {base}, "by": {"24h"}},
			{"cap": {"1"}, "longer": {"1m"}},
			{"cap": {"1"}, "longer": {"25h"}},
			{"cap": {"1"}, "longer": {"soon"}},
		} {
			if status, body, _ := w.post(editor, "/caps/extend", bad); status != 422 {
				t.Errorf("extend %v = %d: %s", bad, status, words(body))
			}
		}
		for target, who := range map[string]access.Person{"/caps/extend": viewer, "/caps/lift": viewer} {
			if status, _, _ := w.post(who, target, url.Values{"cap": {base}, "by": {"2h"}}); status != 403 {
				t.Errorf("POST %s by a viewer = %d", target, status)
			}
		}
		foreign := access.Person{Name: "fo", Level: access.Editor, Owners: []string{"team-search"}}
		for _, target := range []string{"/caps/extend", "/caps/lift"} {
			if status, _, _ := w.post(foreign, target, url.Values{"cap": {base}, "by": {"2h"}}); status != 403 {
				t.Errorf("POST %s by an editor of others = %d", target, status)
			}
		}
		if body, _ := w.get(foreign, "/caps", false); strings.Contains(body, `form="lift"`) {
			t.Error("an editor of others is shown the buttons")
		}

		// Past the first end and its ramp it holds.
		time.Sleep(10 * time.Minute)
		near(t, "admitted past the first end", w.admitted("bot", 10*time.Second), 100, 0.1)
		if _, text := w.get(editor, "/caps?extend=1", false); !strings.Contains(text, "Another end bot → shop") {
			t.Errorf("no form for another end: %s", text)
		}
		w.must(editor, "/caps/extend", url.Values{"cap": {"1"}, "longer": {"2h"}})
		if left := time.Until(time.UnixMilli(w.caps()[0].GetEndsAtMs())).Round(time.Second); left != 2*time.Hour {
			t.Errorf("%v left, want 2 h", left)
		}

		location, body, text = w.must(editor, "/caps/lift", url.Values{"cap": {"1"}})
		if location != "/caps?lifted=1" || !strings.Contains(text, "Lifted the cap on bot") || !strings.Contains(text, "No cap is running") {
			t.Errorf("%s: %s", location, text)
		}
		if !strings.Contains(body, `href="/caps?caller=bot&amp;service=shop&amp;rps=100"`) {
			t.Error("no way to place it again")
		}
		time.Sleep(time.Second)
		if got := w.admitted("bot", time.Second); got < 500 {
			t.Errorf("admits %v rps of bot once lifted", got)
		}
		if status, body, _ := w.post(editor, "/caps/lift", url.Values{"cap": {"1"}}); status != 404 {
			t.Errorf("lifted twice: %d: %s", status, words(body))
		}
		if _, text := w.get(viewer, "/caps", false); !strings.Contains(text, "bot → shop at 100 rps") {
			t.Errorf("not listed as ended: %s", text)
		}
	})
}

// What a cap dropped is what the history counted of it, and the curve is what it
// counted of the caller.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		w.must(editor, "/caps", url.Values{"service": {"shop"}, "caller": {"bot"}, "rps": {"200"}, "until": {"2m"}, "reason": {"x"}})
		time.Sleep(7 * time.Minute)
		var dropped, offered float64
		for _, m := range w.history("shop/_cap-1", "") {
			dropped += float64(m.GetDropped())
		}
		_, text := w.get(viewer, "/caps", false)
		if dropped < 50_000 {
			t.Fatalf("the history has %v drops", dropped)
		}
		near(t, "dropped", number(t, text, `bot → shop at 200 rps ([\d.]+)k`)*1000, dropped, 0.01)

		time.Sleep(16 * time.Minute)
		body, _ := w.get(editor, "/caps?service=shop&caller=bot", false)
		minutes := w.history("shop/each", "bot")
		rows := regexp.MustCompile(`<th scope="row"><time datetime="([^"]+)"[^>]*>[^<]*</time></th>\s*<td class="num">([^<]+)</td>`).FindAllStringSubmatch(body, -1)
		compared := 0
		for _, row := range rows { // each says when its ten minutes end
			to, err := time.Parse(time.RFC3339, row[1])
			if err != nil {
				t.Fatal(err)
			}
			n := 0.0
			offered = 0
			for _, m := range minutes {
				if at := time.UnixMilli(m.GetStartMs()); !at.Before(to.Add(-10*time.Minute)) && at.Before(to) {
					offered += float64(m.GetOffered()) / 60
					n++
				}
			}
			if n == 10 {
				near(t, "offered until "+row[1], number(t, row[2], `([\d,.]+)`), offered/n, 0.01)
				compared++
			}
		}
		if compared == 0 {
			t.Errorf("no row of %d to compare with %d minutes: %v", len(rows), len(minutes), rows)
		}
	})
}

// Under a running cap what is offered is still all that callers send.
func TestEffectUnderACap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		w.must(editor, "/caps", url.Values{"service": {"shop"}, "caller": {"bot"}, "rps": {"200"}, "for": {"1h"}, "reason": {"x"}})
		time.Sleep(20 * time.Second)
		_, text := w.effect(editor, url.Values{"service": {"shop"}, "caller": {"bot"}, "rps": {"100"}})
		near(t, "offered", number(t, text, `Offered now ([\d,.]+) rps`), 800, 0.05)
		near(t, "dropped already", number(t, text, `by running caps ([\d,.]+) rps`), w.caps()[0].GetDroppedRps(), 0.02)
		if strings.Contains(text, "shop/all") {
			t.Errorf("says what a bucket would drop: %s", text)
		}
	})
}

// A cap that ramps out is shown as that, and cannot be extended.
func TestRampsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		w.must(editor, "/caps", url.Values{"service": {"shop"}, "caller": {"bot"}, "rps": {"100"}, "until": {"1m"}, "reason": {"x"}})
		base := fmt.Sprintf("1 %d", w.caps()[0].GetEndsAtMs())
		time.Sleep(61 * time.Second)
		body, text := w.get(editor, "/caps", false)
		if !strings.Contains(text, "ramps out") || strings.Contains(body, `form="extend-1h"`) || !strings.Contains(text, "Running 0 caps") {
			t.Errorf("one that ramps out: %s", text)
		}
		status, body, _ := w.post(editor, "/caps/extend", url.Values{"cap": {base}, "by": {"1h"}})
		if status != 422 || !strings.Contains(words(body), "ramps out: place a new one") {
			t.Errorf("extend = %d: %s", status, words(body))
		}
		time.Sleep(3 * time.Minute)
		if _, text := w.get(editor, "/caps?placed=1", true); !strings.Contains(text, "This cap is not there any more") {
			t.Errorf("once it is over: %s", text)
		}
	})
}

// Without scripts the button Preview says the effect, and all stays as typed.
func TestPreviewWithoutScripts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		f := url.Values{"service": {"shop"}, "caller": {"bot"}, "rps": {"600"}, "for": {"4h"}, "reason": {"kept <b>"}}
		body, _ := w.get(editor, "/caps/preview?"+f.Encode(), false)
		bot := w.offered("bot")
		near(t, "share dropped", number(t, words(body), `Would drop ([\d.]+)% of bot now\.`)/100, (bot-600)/bot, 0.01)
		kept := form(t, body)
		for name := range f {
			if kept.Get(name) != f.Get(name) {
				t.Errorf("%s = %q, want %q", name, kept.Get(name), f.Get(name))
			}
		}
		if !strings.Contains(body, `formmethod="get" formaction="/caps/preview"`) {
			t.Error("no button to preview")
		}
		if len(w.caps()) != 0 {
			t.Error("a preview placed a cap")
		}
	})
}

func TestViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		w.must(editor, "/caps", url.Values{"service": {"shop"}, "caller": {"bot"}, "rps": {"100"}, "for": {"1h"}, "reason": {"x"}})
		body, text := w.get(viewer, "/caps?service=shop&caller=bot", false)
		for _, not := range []string{`action="/caps"`, `form="lift"`, `form="extend`, `action="/caps/disable"`, "Make permanent"} {
			if strings.Contains(body, not) {
				t.Errorf("a viewer is shown %s", not)
			}
		}
		if !strings.Contains(text, "bot → shop") || !strings.Contains(text, "you can look, not change") {
			t.Errorf("a viewer sees %s", text)
		}
		for _, target := range []string{"/caps", "/caps/effect", "/caps/lift", "/caps/extend", "/caps/disable", "/caps/enable"} {
			if status, _, _ := w.post(viewer, target, url.Values{"cap": {"1"}, "all": {"yes"}, "why": {"x"}}); status != 403 {
				t.Errorf("POST %s by a viewer = %d", target, status)
			}
		}
	})
}

func TestKillSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		if status, body, _ := w.post(admin, "/caps/disable", url.Values{"all": {"yes"}}); status != 422 || !strings.Contains(words(body), "To stop dropping needs a reason.") {
			t.Errorf("without a reason: %d: %s", status, words(body))
		}
		if status, _, _ := w.post(editor, "/caps/disable", url.Values{"all": {"yes"}, "why": {"x"}}); status != 403 {
			t.Errorf("everything by an editor = %d", status)
		}
		if body, _ := w.get(editor, "/caps", false); strings.Contains(body, `name="all"`) {
			t.Error("an editor is offered to stop everything")
		}
		_, _, text := w.must(editor, "/caps/disable", url.Values{"off": {"shop"}, "why": {"INC-1"}})
		if !strings.Contains(text, "Nothing is dropped for shop") || !strings.Contains(text, "Nothing is dropped for 1 service: shop Enable dropping") {
			t.Errorf("disabled: %s", text)
		}
		time.Sleep(time.Second)
		near(t, "admitted while disabled", w.admitted("bot", time.Second), 800, 0.01)
		if _, _, text = w.must(editor, "/caps/enable", url.Values{"off": {"shop"}}); !strings.Contains(text, "Dropping is enabled everywhere") {
			t.Errorf("enabled: %s", text)
		}
		if _, _, text = w.must(admin, "/caps/disable", url.Values{"all": {"yes"}, "why": {"INC-1"}}); !strings.Contains(text, "Nothing is dropped anywhere") {
			t.Errorf("all disabled: %s", text)
		}
		if _, _, text = w.must(admin, "/caps/enable", url.Values{"all": {"yes"}}); !strings.Contains(text, "Dropping is enabled everywhere") {
			t.Errorf("all enabled: %s", text)
		}
	})
}

// The stream says at once what runs, and within a second what changed.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		r, err := w.Network.Client(t).Get("http://controller/caps/events")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if event := first(t, r.Body); !strings.HasPrefix(event, "data: ") || !strings.Contains(event, "No cap is running") {
			t.Errorf("first event: %s", event)
		}
		w.must(editor, "/caps", url.Values{"service": {"shop"}, "caller": {"bot"}, "rps": {"100"}, "for": {"1h"}, "reason": {"x"}})
		placed := time.Now()
		for !strings.Contains(first(t, r.Body), "bot → shop") {
		}
		if took := time.Since(placed); took > time.Second {
			t.Errorf("shown after %v", took)
		}
		for !strings.Contains(first(t, r.Body), "confirmed by 2 of 2 sidecars") {
		}
		if took := time.Since(placed); took > 3*time.Second {
			t.Errorf("confirmed after %v", took)
		}
	})
}

// Names and reasons from outside are text, wherever they come from.
func TestHostileNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		const evil = `"><img src=x onerror=alert(1)><script>alert(2)</script>'`
		body, _ := w.get(admin, "/caps?"+url.Values{"service": {evil}, "caller": {evil}, "procedure": {evil}, "rps": {evil}, "extend": {evil}}.Encode(), false)
		pages := []string{body}
		host := w.Host("h-free", "z1", "r1", "free", "a-z1")
		for range 100 {
			host.Service("free").Decide("web", evil)
		}
		time.Sleep(25 * time.Second) // details come every ten seconds
		body, _ = w.get(admin, "/caps?service=free", false)
		if !strings.Contains(body, "&lt;img") {
			t.Error("a procedure that is seen is not offered")
		}
		pages = append(pages, body)
		f := url.Values{"service": {"shop"}, "caller": {"bot"}, "rps": {"100"}, "for": {"1h"}, "reason": {evil}, "ready": {evil}}
		effect, _ := w.effect(admin, f)
		pages = append(pages, effect)
		_, placed, _ := w.must(admin, "/caps", f)
		if len(w.caps()) != 1 {
			t.Fatal("not placed: nothing is proven")
		}
		pages = append(pages, placed)
		_, lifted, _ := w.must(admin, "/caps/lift", url.Values{"cap": {"1"}})
		pages = append(pages, lifted)
		for _, target := range []string{"/caps/lift", "/caps/extend", "/caps/disable", "/caps/enable", "/caps"} {
			_, refused, _ := w.post(admin, target, url.Values{"cap": {evil}, "by": {evil}, "longer": {evil}, "off": {evil}, "why": {evil}, "service": {evil}, "to": {evil}, "until": {evil}})
			pages = append(pages, refused)
		}
		for i, p := range pages {
			if strings.Contains(p, "<img") || strings.Contains(p, "<script>alert") {
				t.Errorf("page %d has markup from outside", i)
			}
		}
	})
}

// Numbers that a query or form cannot have are refused, never a failure.
func TestBrokenInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		for _, target := range []string{"/caps?placed=999", "/caps?lifted=x", "/caps?extended=-1", "/caps?extend=%00", "/caps?service=%ff&caller=%ff&rps=1e999", "/caps?switched=1", "/caps?service=" + strings.Repeat("x", 3000)} {
			w.get(admin, target, false)
		}
		long := strings.Repeat("y", 5000)
		for _, target := range []string{"/caps", "/caps/effect", "/caps/lift", "/caps/extend", "/caps/disable", "/caps/enable"} {
			r, body := pagetest.Post(t, w.Pages(), admin, target, url.Values{"service": {long}, "cap": {long}, "reason": {long}, "rps": {"1"}, "for": {"1h"}, "off": {long}, "why": {long}, "longer": {"1h"}})
			if r.StatusCode >= http.StatusInternalServerError || len(body) > 300_000 {
				t.Errorf("POST %s = %d, %d bytes", target, r.StatusCode, len(body))
			}
		}
	})
}
