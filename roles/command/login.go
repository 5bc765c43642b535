package command

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
	"grl/roles/command/terminal"
)

// Login returns the command that opens a session.
func Login() *cobra.Command {
	var call calling
	var passwordFile string
	cmd := &cobra.Command{
		Use:   "login ACCOUNT",
		Short: "Sign in at a controller",
		Long: `Sign in at a controller, with a password that is asked for on the terminal or read
from a file. Later commands that call the same URL are made as this account until the
session ends: after half an hour without a call, or grl logout. Where people sign in
through OIDC, make an API token on the dashboard instead.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			password, err := readPassword(cmd, passwordFile, fmt.Sprintf("Password of %s at %s: ", args[0], conn.URL))
			if err != nil {
				return err
			}
			answer, err := conn.Access.Login(cmd.Context(), &grlv1.LoginRequest{Account: args[0], Password: password})
			var refused *connect.Error
			if errors.As(err, &refused) && refused.Code() == connect.CodeUnauthenticated {
				return errors.New(terminal.Printable(refused.Message())) // without the advice to sign in
			}
			if err != nil {
				return err
			}
			expires := time.UnixMilli(answer.GetExpiresAtMs())
			if err := remote.SaveSession(os.Getenv, conn.URL, answer.GetSession(), expires); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "signed in at %s as %s, until %s at the latest\n", conn.URL, args[0], moment(answer.GetExpiresAtMs()))
			return err
		},
	}
	call.connects(cmd)
	cmd.Flags().StringVar(&passwordFile, "password-file", "", "`file` with the password, instead of being asked")
	return cmd
}

// readPassword returns the password in a file, or else asks for it.
func readPassword(cmd *cobra.Command, file, prompt string) (string, error) {
	if file == "" {
		password, err := terminal.Password(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), prompt)
		if errors.Is(err, terminal.ErrNoTerminal) {
			return "", wrongUse(err)
		}
		return password, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", wrongUse(fmt.Errorf("read password: %w", err))
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// Logout returns the command that ends the session.
func Logout() *cobra.Command {
	var call calling
	cmd := &cobra.Command{
		Use:   "logout",
		Short: "End the session of grl login",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			_, err = conn.Access.Logout(cmd.Context(), &grlv1.LogoutRequest{})
			if err != nil && remote.Code(err) != connect.CodeUnauthenticated { // it had ended
				return err
			}
			if err := remote.SaveSession(os.Getenv, conn.URL, "", time.Time{}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "signed out at %s\n", conn.URL)
			return err
		},
	}
	call.connects(cmd)
	return cmd
}

// WhoAmI returns the command that says as whom a controller takes this user.
func WhoAmI() *cobra.Command {
	var call calling
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Say as whom calls are made, and what they may do",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			me, err := conn.Access.WhoAmI(cmd.Context(), &grlv1.WhoAmIRequest{})
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), me, func() string { return whoText(me) })
		},
	}
	call.connects(cmd)
	call.prints(cmd)
	return cmd
}

func whoText(me *grlv1.WhoAmIResponse) string {
	a := me.GetAccount()
	if me.GetBy() == "open" {
		return "everyone is admin: there is no account yet; grl account add makes the first one\n"
	}
	text := fmt.Sprintf("%s, %s, by %s", a.GetName(), roleText(a.GetRole()), me.GetBy())
	if a.GetRole() == grlv1.AccountRole_ACCOUNT_ROLE_EDITOR {
		text += "; services: " + dash(strings.Join(a.GetServices(), ", ")) + "; owners: " + dash(strings.Join(a.GetOwners(), ", "))
	}
	return terminal.Printable(text) + "\n"
}
