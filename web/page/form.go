package page

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"grl/proto/access"
)

const (
	maxForm = 2 << 20  // bytes of a form: a policy, or many ticked rows
	maxDoor = 16 << 10 // bytes of a form of who is not inside yet
	maxNext = 2 << 10  // bytes of the path that one goes on to

	formWithin = time.Minute // that a large form may take to be sent
)

// doors are the pages by which one comes and goes: none to come back to.
var doors = map[string]bool{"/login": true, "/logout": true, "/first": true}

// ReadForm reads the form of r, or answers that it cannot be read. Who is inside
// has time for a large one.
func ReadForm(w http.ResponseWriter, r *http.Request) bool {
	most := int64(maxForm)
	if access.From(r.Context()).Person == nil {
		most = maxDoor
	}
	control := http.NewResponseController(w) // a recorder of tests has no deadlines
	if most == maxForm {
		_ = control.SetReadDeadline(time.Now().Add(formWithin))
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "This form cannot be read, or is too large.", http.StatusBadRequest)
		return false // the deadline stays, for the rest of the body
	}
	_ = control.SetReadDeadline(time.Time{})
	return true
}

// OwnPath returns next if it is a path of a page here, else "/": nobody is led
// to another site by a link or form.
func OwnPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || len(next) > maxNext || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.Contains(next, `\`) {
		return "/"
	}
	if u.Scheme != "" || u.Host != "" || doors[u.Path] || strings.HasPrefix(u.Path, "/oidc/") {
		return "/"
	}
	return cmp.Or(u.RequestURI(), "/")
}

// SetCookie sets a cookie of this host that no script can read and no form of
// another site sends along; maxAge is in seconds, 0: until the browser ends, -1:
// now.
func SetCookie(w http.ResponseWriter, r *http.Request, name, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: maxAge,
		Secure: r.TLS != nil, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// Choice is an option of a select or a group of buttons.
type Choice struct {
	Value, Name string
	Note        string // below the name, in a group; "": none
}
