package policies_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grl/proto/access"
	"grl/web/pagetest"
)

// nightly has a comment in each place where one may be.
const nightly = `# by hand
name: nightly # of all
kind: peak
match: {service: payments} # the core
floor: 10
events:
  - {name: sale, from: 2026-11-27, to: 2026-11-30 18:00, factor: 2.5}
`

// formOf returns the form of the page of a policy as a browser would hand it in.
func formOf(t testing.TB, body string) url.Values {
	t.Helper()
	_, form, ok := strings.Cut(body, `id="edit"`)
	if !ok {
		t.Fatalf("no form in:\n%s", plain(body))
	}
	form, _, _ = strings.Cut(form, "</form>")
	out := url.Values{}
	attribute := func(tag, name string) string {
		_, rest, ok := strings.Cut(tag, " "+name+`="`)
		if !ok {
			return ""
		}
		value, _, _ := strings.Cut(rest, `"`)
		return strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(value)
	}
	for part := range strings.SplitSeq(form, "<") {
		tag, text, _ := strings.Cut(part, ">")
		switch name := attribute(" "+tag, "name"); {
		case strings.HasPrefix(tag, "input ") && name != "":
			out.Set(name, attribute(tag, "value"))
		case strings.HasPrefix(tag, "select "):
			out.Set("select", name)
		case strings.HasPrefix(tag, "option ") && strings.Contains(tag, " selected"):
			out.Set(out.Get("select"), attribute(tag, "value"))
		case strings.HasPrefix(tag, "textarea "):
			out.Set(name, strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(strings.TrimPrefix(text, "\n")))
		}
	}
	out.Del("select")
	return out
}

func TestListInOrder(t *testing.T) {
	r := newRig(t)
	want(t, r.get(pagetest.Admin, "/policies"), "No policy yet", "New policy")
	lacks(t, r.get(viewer, "/policies"), "/policies/new")
	r.limits("payments", "web=100", "app=50", "x1=5")
	r.limits("search", "web=10")
	r.apply("name: aaa\nkind: peak\nmatch: {service: \"*\"}\n", nightly, "name: zz\nkind: live\nmode: shadow\nmatch: {bucket: x*}\n")
	body := r.get(viewer, "/policies")
	want(t, body, "zz live, shadow 1", "nightly peak, propose 2", "aaa peak, propose 1", "by others")
	text := plain(body)
	if !(strings.Index(text, "zz live") < strings.Index(text, "nightly peak") && strings.Index(text, "nightly peak") < strings.Index(text, "aaa peak")) {
		t.Errorf("not in the order of matching: %s", text)
	}
	want(t, r.get(viewer, "/policies/show?name=nightly"), "2 buckets match. 1 more would, but for more specific policies such as zz.")
	body = r.get(viewer, "/policies/buckets?name=nightly")
	want(t, body, "payments/ web", "payments/ app", "1–2 of 2")
	lacks(t, body, "x1")
	for _, target := range []string{"/policies/show", "/policies/show?name=none", "/policies/buckets?name=none", "/policies/trial?name=none", "/policies/version?number=77", "/policies/version"} {
		if response, _ := pagetest.Get(t, r.pages, viewer, target, false); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", target, response.Status)
		}
	}
}

func TestSaveKeepsComments(t *testing.T) {
	r := newRig(t)
	r.limits("payments", "web=100")
	base := r.apply(nightly)
	form := formOf(t, r.get(pagetest.Admin, "/policies/show?name=nightly"))
	if form.Get("base") != fmt.Sprint(base) || form.Get("match.service") != "payments" || form.Get("events[0].to") != "2026-11-30 18:00" || form.Get("kind") != "peak" {
		t.Fatalf("form %v", form)
	}

	// Nothing typed: nothing changed.
	status, _ := r.post(pagetest.Admin, "/policies/save", form)
	if status != http.StatusSeeOther || r.saved("nightly") != nightly {
		t.Errorf("unchanged: %d\n%s", status, r.saved("nightly"))
	}
	form.Set("floor", "20")
	form.Set("max_step", "0.1")
	form.Set("events[1].name", "fair: \"2\"")
	form.Set("events[1].from", "2026-12-01")
	form.Set("events[1].to", "2026-12-02")
	form.Set("events[1].factor", "3")
	form.Set("reason", "a higher floor")
	status, body := r.post(pagetest.Admin, "/policies/save", form)
	wanted := `# by hand
name: nightly # of all
kind: peak
match: {service: payments} # the core
floor: 20
events:
  - {name: sale, from: 2026-11-27, to: 2026-11-30 18:00, factor: 2.5}
  - {name: "fair: \"2\"", from: 2026-12-01, to: 2026-12-02, factor: 3}
max_step: 0.1
`
	if diff := cmp.Diff(wanted, r.saved("nightly")); diff != "" || status != http.StatusSeeOther {
		t.Errorf("%d (-want +got):\n%s", status, diff)
	}
	want(t, body, "Saved as version 2 and active", "a higher floor", "ada")
	want(t, r.get(viewer, "/policies/version?number=2"), "- floor: 10", "+ floor: 20", "It is active")

	// Another version is active by now: the notice says so.
	r.apply(strings.Replace(wanted, "20", "30", 1))
	want(t, r.get(viewer, "/policies/show?name=nightly&saved=2"), "It was changed since: version 3 is active")
}

func TestNewPolicy(t *testing.T) {
	r := newRig(t)
	r.limits("payments", "web=100")
	form := formOf(t, r.get(editor, "/policies/new"))
	form.Set("name", "agreed")
	form.Set("kind", "quota")
	form.Set("match.service", "payments")
	form.Set("quota[0].rps", "1200")
	form.Set("quota[0].to", "2027-01-01")
	form.Set("quota[1].rps", "1500")
	form.Set("quota[1].regions", "eu: 600, us: 700")
	form.Set("quota[1].from", "2027-01-01")
	status, body := r.post(editor, "/policies/save", form)
	wanted := "name: agreed\nkind: quota\nmode: propose\nmatch: {service: payments}\nquota:\n  - {rps: 1200, to: 2027-01-01}\n  - {rps: 1500, regions: {eu: 600, us: 700}, from: 2027-01-01}\n"
	if status != http.StatusSeeOther || r.saved("agreed") != wanted {
		t.Fatalf("%d: %s\n%s", status, r.saved("agreed"), plain(body))
	}
	want(t, body, "Saved as version 1 and active", "quota, propose")
	if got := formOf(t, body).Get("quota[1].regions"); got != "eu: 600, us: 700" {
		t.Errorf("regions %q", got)
	}

	// A name that is taken is a conflict, not an overwriting.
	form.Set("quota[0].rps", "9")
	if status, body = r.post(editor, "/policies/save", form); status != http.StatusConflict || r.saved("agreed") != wanted {
		t.Errorf("a name that is taken: %d\n%s", status, plain(body))
	}
}

// TestFaults has each fault at its field, and what was typed stay.
func TestFaults(t *testing.T) {
	r := newRig(t)
	r.limits("payments", "web=100")
	r.apply(nightly)
	form := formOf(t, r.get(pagetest.Admin, "/policies/show?name=nightly"))
	for field, value := range map[string]string{
		"max_step": "35", "history": "soon", "match.service": "pay**", "events[0].from": "tomorrow", "round": "2]", "cycle": "@daily", "floor": "-1", "time_zone": "Mars",
	} {
		form.Set(field, value)
	}
	for _, target := range []string{"/policies/save", "/policies/preview"} {
		status, body := r.post(pagetest.Admin, target, form)
		if status != http.StatusUnprocessableEntity {
			t.Fatalf("%s: %d", target, status)
		}
		for field := range map[string]bool{"max_step": true, "history": true, "match.service": true, "events[0].from": true, "round": true, "cycle": true, "floor": true, "time_zone": true} {
			if !strings.Contains(body, `id="`+field+`-error"`) {
				t.Errorf("%s: no fault at %s", target, field)
			}
		}
		if !strings.Contains(body, `<details class="more" open><summary>Cycle`) {
			t.Errorf("%s: the faults of cycle, time zone and rounding are folded away", target)
		}
		if again := formOf(t, body); again.Get("max_step") != "35" || again.Get("events[0].from") != "tomorrow" {
			t.Errorf("%s: what was typed is gone: %v", target, again)
		}
	}
	if r.saved("nightly") != nightly {
		t.Errorf("saved\n%s", r.saved("nightly"))
	}

	// As YAML the lines are named.
	yaml := formOf(t, r.get(pagetest.Admin, "/policies/show?name=nightly&as=yaml"))
	if yaml.Get("text") != nightly {
		t.Fatalf("text %q", yaml.Get("text"))
	}
	yaml.Set("text", "name: nightly\r\nkind: peek\r\nmatch: {service: payments}\r\nflor: 1\r\n")
	status, body := r.post(pagetest.Admin, "/policies/save", yaml)
	if status != http.StatusUnprocessableEntity {
		t.Errorf("yaml: %d", status)
	}
	want(t, body, "Not saved: 2 faults", "line 2, kind", "line 4 : Unknown key: found")
	yaml.Set("text", "name: other\nkind: peak\nmatch: {service: payments}\n")
	status, body = r.post(pagetest.Admin, "/policies/save", yaml)
	if status != http.StatusUnprocessableEntity {
		t.Errorf("two with one match: %d", status)
	}
	want(t, body, "selects the same buckets as policy")
	yaml.Set("text", strings.Replace(nightly, "floor: 10", "floor: 11 # up", 1))
	if status, body = r.post(pagetest.Admin, "/policies/save", yaml); status != http.StatusSeeOther || r.saved("nightly") != yaml.Get("text") {
		t.Errorf("yaml: %d\n%s", status, plain(body))
	}
}

func TestStaleEdit(t *testing.T) {
	r := newRig(t)
	r.limits("payments", "web=100")
	r.apply(nightly)
	form := formOf(t, r.get(pagetest.Admin, "/policies/show?name=nightly"))
	theirs := strings.Replace(nightly, "floor: 10", "floor: 99", 1)
	r.apply(theirs)
	form.Set("max_step", "0.1")
	status, body := r.post(pagetest.Admin, "/policies/save", form)
	if status != http.StatusConflict || r.saved("nightly") != theirs {
		t.Fatalf("%d\n%s", status, r.saved("nightly"))
	}
	want(t, body, "Not saved: version 2 changed this policy while you were editing", "Theirs, version 2", "- floor: 10", "+ floor: 99", "+ max_step: 0.1", "Keep theirs")
	again := formOf(t, body)
	if again.Get("base") != "2" || again.Get("max_step") != "0.1" || again.Get("floor") != "10" {
		t.Errorf("form %v", again)
	}
	status, _ = r.post(pagetest.Admin, "/policies/save", again)
	if status != http.StatusSeeOther || r.saved("nightly") != nightly+"max_step: 0.1\n" {
		t.Errorf("on top of theirs: %d\n%s", status, r.saved("nightly"))
	}

	// Deleting what somebody changed meanwhile is refused too.
	status, body = r.post(pagetest.Admin, "/policies/delete", url.Values{"name": {"nightly"}, "base": {"1"}, "reason": {"gone"}})
	if status != http.StatusConflict || r.saved("nightly") == "" {
		t.Errorf("delete: %d", status)
	}
	want(t, body, "Not deleted: it was changed while you were looking")
}

func TestDeleteAndRollback(t *testing.T) {
	r := newRig(t)
	r.limits("payments", "web=100")
	r.apply(nightly)
	form := url.Values{"name": {"nightly"}, "base": {"1"}}
	status, body := r.post(pagetest.Admin, "/policies/delete", form)
	if status != http.StatusUnprocessableEntity || r.saved("nightly") == "" {
		t.Errorf("without a reason: %d", status)
	}
	want(t, body, "Not deleted", "A reason is missing.")
	marked(t, body, "delete-reason")
	form.Set("reason", "no more")
	status, body = r.post(pagetest.Admin, "/policies/delete", form)
	if status != http.StatusSeeOther || r.saved("nightly") != "" {
		t.Fatalf("delete: %d", status)
	}
	want(t, body, "Saved as version 2 and active", "no more")
	body = r.get(pagetest.Admin, "/policies/version?number=1")
	want(t, body, "What rolling back would change", "+ floor: 10", "Roll back to version 1")
	back := url.Values{"number": {"1"}, "base": {"1"}, "reason": {"it was needed"}}
	if status, body = r.post(pagetest.Admin, "/policies/rollback", back); status != http.StatusConflict || r.saved("nightly") != "" {
		t.Errorf("stale: %d", status)
	}
	want(t, body, "version 2 was made while you were looking")
	back.Set("base", "2")
	back.Set("reason", "")
	if status, _ = r.post(pagetest.Admin, "/policies/rollback", back); status != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: %d", status)
	}
	back.Set("reason", "it was needed")
	if status, body = r.post(pagetest.Admin, "/policies/rollback", back); status != http.StatusSeeOther || r.saved("nightly") != nightly {
		t.Errorf("roll back: %d", status)
	}
	want(t, body, "Saved as version 3 and active", "it was needed")
	want(t, r.get(viewer, "/policies/show?name=nightly"), "1 by others", "2 no more", "3 it was needed")
}

func TestRights(t *testing.T) {
	r := newRig(t)
	r.limits("payments", "web=100")
	r.limits("search", "web=10")
	r.apply(nightly, "name: all\nkind: peak\nmatch: {service: \"*\"}\n", "name: find\nkind: peak\nmatch: {service: search}\n")
	for _, tt := range []struct {
		name string
		who  access.Person
		may  []string
	}{
		{"admin", pagetest.Admin, []string{"nightly", "all", "find"}},
		{"editor", editor, []string{"nightly"}},
		{"editor of owner's", owner, []string{"find"}},
		{"viewer", viewer, nil},
	} {
		var got []string
		for _, name := range []string{"nightly", "all", "find"} {
			body := r.get(tt.who, "/policies/show?name="+name)
			if strings.Contains(body, `action="/policies/save"`) {
				got = append(got, name)
			}
			if strings.Contains(body, `action="/policies/save"`) != strings.Contains(body, `action="/policies/delete"`) {
				t.Errorf("%s, %s: one of two forms", tt.name, name)
			}
		}
		if diff := cmp.Diff(tt.may, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	form := formOf(t, r.get(pagetest.Admin, "/policies/show?name=all"))
	form.Set("floor", "1")
	if status, _ := r.post(editor, "/policies/save", form); status != http.StatusForbidden {
		t.Errorf("an editor changes a policy of all: %d", status)
	}
	for _, target := range []string{"/policies/save", "/policies/preview", "/policies/delete", "/policies/rollback"} {
		if status, _ := r.post(viewer, target, form); status != http.StatusForbidden {
			t.Errorf("viewer, %s: %d", target, status)
		}
	}
	if response, _ := pagetest.Get(t, r.pages, viewer, "/policies/new", false); response.StatusCode != http.StatusForbidden {
		t.Errorf("viewer, new: %s", response.Status)
	}
}

// TestHostile hands in what breaks YAML, HTML or both.
func TestHostile(t *testing.T) {
	r := newRig(t)
	r.limits("payments", "web=100")
	r.apply(nightly)
	for _, text := range []string{
		`<script>alert(1)</script>`, `" onmouseover="alert(1)`, "'><img src=x onerror=alert(1)>", "\u202egnp.exe", "a\x00b", "a\nkind: live", "{a: b", "]", "# x", "&a *a", "!!int 3",
		strings.Repeat("x", 70_000), "yes", "0x10", "1e3", "-", "|", "%", "@", "`", "a: b", "\t", "\xff\xfe", "*", "null", "2026-01-01",
	} {
		form := formOf(t, r.get(pagetest.Admin, "/policies/show?name=nightly"))
		for field := range form {
			switch field {
			case "base", "was", "as":
			default:
				form.Set(field, text)
			}
		}
		for _, target := range []string{"/policies/save", "/policies/preview"} {
			status, body := r.post(pagetest.Admin, target, form)
			if status != http.StatusUnprocessableEntity && status != http.StatusBadRequest { // too large
				t.Errorf("%q, %s: %d", text[:min(len(text), 20)], target, status)
			}
			lacks(t, body, "<script>alert", `" onmouseover="`, "<img src=x")
		}
		yaml := url.Values{"was": {"nightly"}, "base": {"1"}, "as": {"yaml"}, "text": {text}}
		status, body := r.post(pagetest.Admin, "/policies/save", yaml)
		if status != http.StatusUnprocessableEntity {
			t.Errorf("%q as YAML: %d", text[:min(len(text), 20)], status)
		}
		lacks(t, body, "<script>alert", `" onmouseover="`, "<img src=x")
		if response, body := pagetest.Get(t, r.pages, viewer, "/policies/show?name="+url.QueryEscape(text), false); response.StatusCode != http.StatusNotFound || strings.Contains(body, "<script>alert") {
			t.Errorf("%q as a name: %s", text[:min(len(text), 20)], response.Status)
		}
	}
	if r.saved("nightly") != nightly {
		t.Error("something was saved")
	}
}

// TestManyItems has a list that is too long for a form be edited as YAML.
func TestManyItems(t *testing.T) {
	r := newRig(t)
	r.limits("payments", "web=100")
	text := nightly
	for i := range 400 {
		text += fmt.Sprintf("  - {name: e%d, from: 2026-12-01, to: 2026-12-02, factor: 2}\n", i)
	}
	r.apply(text)
	body := r.get(pagetest.Admin, "/policies/show?name=nightly")
	want(t, body, "It has more than the form shows")
	if formOf(t, body).Get("text") != text || len(body) > 300<<10 {
		t.Errorf("%d bytes", len(body))
	}
}

// TestManyPolicies keeps the page small.
func TestManyPolicies(t *testing.T) {
	r := newRig(t)
	r.limits("payments", "web=100")
	var texts []string
	for i := range 500 {
		texts = append(texts, fmt.Sprintf("name: policy-%d\nkind: peak\nmatch: {service: service-%d}\n", i, i))
	}
	r.apply(texts...)
	for _, target := range []string{"/policies", "/policies/show?name=policy-7", "/policies/version?number=1"} {
		if body := r.get(pagetest.Admin, target); len(body) > 300<<10 {
			t.Errorf("%s: %d bytes", target, len(body))
		}
	}
}
