package remote

import (
	"fmt"
	"net/url"
	"os"
	"strings"
)

// maxTokenBytes bounds a token: a longer text is some other file.
const maxTokenBytes = 4 << 10

// token returns what proves who calls the controller at u: that of --token-file,
// GRL_TOKEN, GRL_TOKEN_FILE or the last login there; empty: nothing does.
func (f *Flags) token(getenv func(string) string, u *url.URL) (string, error) {
	variable := getenv(VariableToken)
	file := f.TokenFile
	if file == "" && variable == "" {
		file = getenv(VariableTokenFile)
	}
	switch {
	case file != "":
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("%w: read token: %w", ErrUsage, err)
		}
		return checkToken(file, string(text))
	case variable != "":
		return checkToken(VariableToken, variable)
	default:
		return savedToken(getenv, u.String())
	}
}

// checkToken returns the token in text, which is never part of the error.
func checkToken(where, text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", fmt.Errorf("%w: %s is empty, not a token", ErrUsage, where)
	}
	printable := func(r rune) bool { return r > ' ' && r < 0x7f }
	if len(text) > maxTokenBytes || strings.ContainsFunc(text, func(r rune) bool { return !printable(r) }) {
		return "", fmt.Errorf("%w: %s holds no token: a token is one line without spaces", ErrUsage, where)
	}
	return text, nil
}
