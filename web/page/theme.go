package page

import "net/http"

// ThemeCookie is the name of the cookie by which a person chooses light or dark.
const ThemeCookie = "grl-theme"

// keysCookie is there if a person wants no shortcuts.
const keysCookie = "grl-keys"

const choiceSeconds = 366 * 24 * 3600 // that a choice is kept

// themes are the values of ThemeCookie.
var themes = map[string]bool{"light": true, "dark": true}

// themeChoices are the buttons; the first one takes the cookie away.
var themeChoices = []Choice{{Value: "", Name: "System"}, {Value: "light", Name: "Light"}, {Value: "dark", Name: "Dark"}}

// shortcutKeys are what static/keys.js does.
var shortcutKeys = []struct {
	Keys []string
	Does string
}{
	{[]string{"/"}, "find"},
	{[]string{"g", "o"}, "Overview"},
	{[]string{"g", "b"}, "Buckets"},
	{[]string{"g", "s"}, "Shadow"},
	{[]string{"g", "e"}, "Explain"},
	{[]string{"g", "c"}, "Caps"},
	{[]string{"g", "p"}, "Policies"},
	{[]string{"g", "r"}, "RLC runs"},
	{[]string{"g", "f"}, "Fleet"},
	{[]string{"g", "a"}, "Alerts"},
	{[]string{"g", "h"}, "Changes"},
	{[]string{"j", "k"}, "next, previous row"},
	{[]string{"Enter"}, "open it"},
	{[]string{"x"}, "choose it"},
	{[]string{"n"}, "place a cap for what is shown"},
	{[]string{"e"}, "change what is shown"},
	{[]string{"[", "]"}, "shorter, longer range"},
	{[]string{"Esc"}, "leave the field, fold the detail"},
	{[]string{"?"}, "this table"},
}

// Routes returns the forms of the frame itself.
func Routes(s *Site) []Route {
	return []Route{
		{Pattern: "POST /theme", Serve: s.setTheme},
		{Pattern: "POST /keys", Serve: s.setKeys},
	}
}

func themeOf(r *http.Request) string {
	if c, err := r.Cookie(ThemeCookie); err == nil && themes[c.Value] {
		return c.Value
	}
	return ""
}

func keysOff(r *http.Request) bool {
	c, err := r.Cookie(keysCookie)
	return err == nil && c.Value == "off"
}

// setTheme takes the choice of light, dark or what the system says.
func (s *Site) setTheme(w http.ResponseWriter, r *http.Request) {
	if !ReadForm(w, r) {
		return
	}
	theme := r.PostForm.Get("theme")
	choose(w, r, ThemeCookie, theme, themes[theme])
}

// setKeys turns the shortcuts off, or on again.
func (s *Site) setKeys(w http.ResponseWriter, r *http.Request) {
	if !ReadForm(w, r) {
		return
	}
	choose(w, r, keysCookie, "off", r.PostForm.Get("keys") == "off")
}

// choose keeps a choice in the browser, or forgets it, and goes back to the page
// on which it was made.
func choose(w http.ResponseWriter, r *http.Request, cookie, value string, keep bool) {
	age := choiceSeconds
	if !keep {
		value, age = "", -1
	}
	SetCookie(w, r, cookie, value, age)
	http.Redirect(w, r, OwnPath(r.PostForm.Get("next")), http.StatusSeeOther)
}
