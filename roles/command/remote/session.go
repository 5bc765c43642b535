package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// session is what a login left for the calls after it.
type session struct {
	Secret    string    `json:"secret"`
	ExpiresAt time.Time `json:"expires_at"`
}

// SaveSession keeps the secret of a login at a controller until it expires, in a
// file that nobody else can read. An empty secret forgets it.
func SaveSession(getenv func(string) string, url, secret string, expires time.Time) error {
	sessions, err := readSessions(getenv)
	if err != nil {
		return err
	}
	for u, s := range sessions {
		if u == url || !time.Now().Before(s.ExpiresAt) {
			delete(sessions, u)
		}
	}
	if secret != "" {
		sessions[url] = session{secret, expires}
	}
	return writeSessions(getenv, sessions)
}

// savedToken returns the secret of the last login at a controller; empty: there
// is none, or it has expired.
func savedToken(getenv func(string) string, url string) (string, error) {
	sessions, err := readSessions(getenv)
	if err != nil {
		return "", err
	}
	if s := sessions[url]; time.Now().Before(s.ExpiresAt) {
		return s.Secret, nil
	}
	return "", nil
}

// sessionsFile returns where sessions are kept; empty: this user has no place
// for them.
func sessionsFile(getenv func(string) string) string {
	dir := getenv("XDG_CONFIG_HOME")
	if home := getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "grl", "sessions.json")
}

func readSessions(getenv func(string) string) (map[string]session, error) {
	sessions := map[string]session{}
	file := sessionsFile(getenv)
	if file == "" {
		return sessions, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return sessions, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	if err := json.Unmarshal(text, &sessions); err != nil {
		return nil, fmt.Errorf("read sessions: %s is damaged, delete it and sign in again", file)
	}
	return sessions, nil
}

func writeSessions(getenv func(string) string, sessions map[string]session) error {
	file := sessionsFile(getenv)
	if file == "" {
		return errors.New("save session: neither HOME nor XDG_CONFIG_HOME says where")
	}
	text, err := json.Marshal(sessions)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("save session: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(file), ".sessions-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("save session: %w", err)
	}
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return fmt.Errorf("save session: %w", err)
	}
	return nil
}
