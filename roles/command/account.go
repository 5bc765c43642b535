package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/terminal"
)

// Account returns the command that lists, adds and removes accounts.
func Account() *cobra.Command {
	var call calling
	cmd := &cobra.Command{
		Use:   "account",
		Short: "List, add or remove accounts of people",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return wrongUse(errors.New("name what to do: list, add or remove"))
		},
	}
	call.connects(cmd)
	cmd.AddCommand(listAccounts(&call), addAccount(&call), removeAccount(&call))
	return cmd
}

func listAccounts(call *calling) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the accounts",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			list, err := conn.Access.ListAccounts(cmd.Context(), &grlv1.ListAccountsRequest{})
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), list, func() string {
				t := terminal.Table{Columns: []string{"account", "role", "services", "owners", "signs in by", "created"}}
				for _, a := range list.GetAccounts() {
					by := "password"
					if a.GetOidc() {
						by = "OIDC"
					}
					t.Add(a.GetName(), roleText(a.GetRole()), dash(strings.Join(a.GetServices(), ", ")), dash(strings.Join(a.GetOwners(), ", ")),
						by, moment(a.GetCreatedAtMs()))
				}
				return t.String()
			})
		},
	}
	call.prints(cmd)
	return cmd
}

func addAccount(call *calling) *cobra.Command {
	var account grlv1.Account
	var role, passwordFile string
	var keep bool
	cmd := &cobra.Command{
		Use:   "add NAME --role viewer|editor|admin",
		Short: "Create an account, or change one",
		Long: `Create an account, or change one. The password is asked for on the terminal, or read
from a file. The first account must be an admin: from then on nobody is admin without
signing in.`,
		Example: "  grl account add ann --role admin\n  grl account add ben --role editor --service payments --owner team-payments",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := atMostOne(cmd, "oidc", "keep-password", "password-file")
			if err != nil {
				return err
			}
			account.Name = args[0]
			if account.Role, err = parseRole(role); err != nil {
				return err
			}
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			request := &grlv1.PutAccountRequest{Account: &account}
			if !keep && !account.GetOidc() {
				if request.Password, err = newPassword(cmd, passwordFile, args[0]); err != nil {
					return err
				}
			}
			answer, err := conn.Access.PutAccount(cmd.Context(), request)
			if err != nil {
				return err
			}
			return call.print(cmd.OutOrStdout(), answer.GetAccount(), func() string {
				return terminal.Printable(fmt.Sprintf("account %s is %s\n", answer.GetAccount().GetName(), roleText(answer.GetAccount().GetRole())))
			})
		},
	}
	call.prints(cmd)
	cmd.Flags().StringVar(&role, "role", "", "viewer, editor or admin")
	cmd.Flags().StringSliceVar(&account.Services, "service", nil, "`service` whose limits an editor may change; several by repeating")
	cmd.Flags().StringSliceVar(&account.Owners, "owner", nil, "`owner` of services whose limits an editor may change; several by repeating")
	cmd.Flags().BoolVar(&account.Oidc, "oidc", false, "signs in through OIDC and has no password here")
	cmd.Flags().BoolVar(&keep, "keep-password", false, "change an account, but not its password")
	cmd.Flags().StringVar(&passwordFile, "password-file", "", "`file` with the password, instead of being asked")
	return cmd
}

// newPassword returns the password of a file, or asks for it twice.
func newPassword(cmd *cobra.Command, file, account string) (string, error) {
	password, err := readPassword(cmd, file, fmt.Sprintf("New password of %s: ", account))
	if err != nil || file != "" {
		return password, err
	}
	again, err := readPassword(cmd, "", "Again: ")
	if err != nil {
		return "", err
	}
	if again != password {
		return "", errors.New("the two passwords differ; nothing was changed")
	}
	return password, nil
}

func removeAccount(call *calling) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an account, with its sessions and tokens",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := call.dial(cmd)
			if err != nil {
				return err
			}
			if _, err := conn.Access.DeleteAccount(cmd.Context(), &grlv1.DeleteAccountRequest{Name: args[0]}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "removed account %s, its sessions and its tokens\n", args[0])
			return err
		},
	}
}

// roles are the words for what a person may do.
var roles = map[string]grlv1.AccountRole{
	"viewer": grlv1.AccountRole_ACCOUNT_ROLE_VIEWER,
	"editor": grlv1.AccountRole_ACCOUNT_ROLE_EDITOR,
	"admin":  grlv1.AccountRole_ACCOUNT_ROLE_ADMIN,
}

func parseRole(word string) (grlv1.AccountRole, error) {
	role, ok := roles[word]
	if !ok {
		return 0, wrongUse(fmt.Errorf("--role %q: want viewer, editor or admin", word))
	}
	return role, nil
}

func roleText(r grlv1.AccountRole) string {
	for word, role := range roles {
		if role == r {
			return word
		}
	}
	return "nobody"
}
