package overview

import (
	"html"
	"regexp"
	"strings"
)

var tags = regexp.MustCompile(`<[^>]*>`)

// plain returns what a page says, without markup.
func plain(body string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(body, " "))), " ")
}

// Plain is plain.
var Plain = plain
