package runs

import (
	"net/url"

	"grl/policy"
	"grl/web/format"
)

// refusedText says why a history is not fit; "" if it is.
func refusedText(word string) string {
	if word == "" {
		return ""
	}
	for _, w := range policy.Refusals() {
		if w.Name == word {
			return format.Sentence(w.Text)
		}
	}
	return format.Printable(word)
}

// policyPath returns the address of the page of a policy; "" for none.
func policyPath(name string) string {
	if name == "" {
		return ""
	}
	return "/policies/show?" + url.Values{"name": {name}}.Encode()
}
