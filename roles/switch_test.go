package roles

import (
	"os"
	"path/filepath"
	"testing"

	"grl/roles/command/remote"
)

func TestSwitchFileIsThatOfServe(t *testing.T) {
	t.Chdir(t.TempDir())
	if got, err := SwitchFile(""); err != nil || got != "/run/grl/disabled" {
		t.Errorf("without a file: %q, %v", got, err)
	}
	if err := os.WriteFile("grl.toml", []byte("[client]\nstate_dir = \"/var/lib/grl\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := SwitchFile(""); err != nil || got != "/var/lib/grl/disabled" {
		t.Errorf("with grl.toml: %q, %v", got, err)
	}
	other := filepath.Join(t.TempDir(), "other.toml")
	if err := os.WriteFile(other, []byte("[client]\nswitch_file = \"/off\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := SwitchFile(other); err != nil || got != "/off" {
		t.Errorf("with a named file: %q, %v", got, err)
	}
	t.Setenv("GRL_CLIENT_SWITCH_FILE", "/from/variable")
	if got, err := SwitchFile(other); err != nil || got != "/from/variable" {
		t.Errorf("with a variable: %q, %v", got, err)
	}
	if got, err := SwitchFile("none.toml"); err == nil {
		t.Errorf("without the named file: %q", got)
	}
}

// What is set for commands does not keep serve from starting.
func TestVariablesOfCommandsAreNoKeys(t *testing.T) {
	var environ []string
	for _, variable := range remote.Variables() {
		environ = append(environ, variable+"=x")
	}
	if _, err := Load("", environ, nil); err != nil {
		t.Error(err)
	}
	if ignored := ignoredEnv(environ); len(ignored) > 0 {
		t.Errorf("serve warns of %v", ignored)
	}
	if _, err := Load("", []string{"GRL_TOKENS=x"}, nil); err == nil {
		t.Error("a misspelt variable is no error")
	}
}
