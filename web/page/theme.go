package page

import "net/http"

// Routes returns the forms of the frame itself.
func Routes(s *Site) []Route {
	return []Route{{Pattern: "POST /theme", Serve: s.setTheme}}
}

const themeSeconds = 366 * 24 * 3600

// setTheme takes the choice of light, dark or what the system says.
func (s *Site) setTheme(w http.ResponseWriter, r *http.Request) {
	if !ReadForm(w, r) {
		return
	}
	age := themeSeconds
	theme := r.PostForm.Get("theme")
	if !themes[theme] {
		theme, age = "", -1
	}
	SetCookie(w, r, ThemeCookie, theme, age)
	http.Redirect(w, r, OwnPath(r.PostForm.Get("next")), http.StatusSeeOther)
}
