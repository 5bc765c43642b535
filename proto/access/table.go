package access

import (
	"strings"

	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"

	"grl/proto/grl/v1/grlv1connect"
)

// Rule says who may call a procedure. The zero value is nobody.
type Rule struct {
	// Anyone may, also who proves nothing.
	Anyone bool
	// People of this level and above may; Nobody: no person.
	People Level
	// Nodes holds, by the role of the server, the roles of nodes that may.
	Nodes map[string][]string
}

// rules is the table of procedures. What is not in it nobody may call. Which
// services an editor may change, and what is a person's own, is decided where
// the change is made.
var rules = map[string]Rule{
	grlv1connect.TreeServiceJoinProcedure: {Nodes: map[string][]string{
		Aggregator: {Client, Controller}, // trusted with all below it: --role all has one certificate
		Controller: {Aggregator, Controller},
	}},

	grlv1connect.ViewServiceListBucketsProcedure: {People: Viewer},
	grlv1connect.ViewServiceGetFleetProcedure:    {People: Viewer, Nodes: byConfigurators},
	grlv1connect.ViewServiceGetTrafficProcedure:  {People: Viewer, Nodes: byConfigurators},
	grlv1connect.ViewServiceGetHistoryProcedure:  {People: Viewer},
	grlv1connect.ViewServiceExplainProcedure:     {People: Viewer},

	grlv1connect.ConfigServiceApplyProcedure:            {People: Editor},
	grlv1connect.ConfigServiceRollbackProcedure:         {People: Editor},
	grlv1connect.ConfigServicePromoteProcedure:          {People: Editor},
	grlv1connect.ConfigServiceFinishRolloutProcedure:    {People: Admin},
	grlv1connect.ConfigServiceGetConfigurationProcedure: {People: Viewer, Nodes: byConfigurators},
	grlv1connect.ConfigServiceListRevisionsProcedure:    {People: Viewer},

	grlv1connect.IncidentServicePlaceCapProcedure:  {People: Editor},
	grlv1connect.IncidentServiceLiftCapProcedure:   {People: Editor},
	grlv1connect.IncidentServiceExtendCapProcedure: {People: Editor},
	grlv1connect.IncidentServiceListCapsProcedure:  {People: Viewer},
	grlv1connect.IncidentServiceDisableProcedure:   {People: Editor},
	grlv1connect.IncidentServiceEnableProcedure:    {People: Editor},

	grlv1connect.PolicyServiceApplyPoliciesProcedure:       {People: Editor},
	grlv1connect.PolicyServiceDeletePolicyProcedure:        {People: Editor},
	grlv1connect.PolicyServiceRollbackPoliciesProcedure:    {People: Editor},
	grlv1connect.PolicyServiceGetPoliciesProcedure:         {People: Viewer, Nodes: byConfigurators},
	grlv1connect.PolicyServiceListPolicyRevisionsProcedure: {People: Viewer},

	grlv1connect.RLCServiceRequestRunProcedure:      {People: Editor},
	grlv1connect.RLCServiceListRunsProcedure:        {People: Viewer},
	grlv1connect.RLCServiceGetRunProcedure:          {People: Viewer},
	grlv1connect.RLCServiceDecideProposalsProcedure: {People: Editor},
	grlv1connect.RLCServiceGetConfiguratorProcedure: {People: Viewer},

	grlv1connect.ConfiguratorServiceAttendProcedure:          configurators,
	grlv1connect.ConfiguratorServiceReadHistoryProcedure:     configurators,
	grlv1connect.ConfiguratorServiceBeginRunProcedure:        configurators,
	grlv1connect.ConfiguratorServiceRecordResultsProcedure:   configurators,
	grlv1connect.ConfiguratorServiceAdoptRunProcedure:        configurators,
	grlv1connect.ConfiguratorServiceFinishRunProcedure:       configurators,
	grlv1connect.ConfiguratorServiceGetMemoryProcedure:       configurators,
	grlv1connect.ConfiguratorServiceApplyRepositoryProcedure: configurators,

	grlv1connect.AlertServiceListAlertsProcedure: {People: Viewer},
	grlv1connect.AlertServiceMuteAlertProcedure:  {People: Editor},

	grlv1connect.AuditServiceListAuditProcedure:   {People: Viewer},
	grlv1connect.AuditServiceVerifyAuditProcedure: {People: Viewer},

	grlv1connect.AccessServiceLoginProcedure:         {Anyone: true},
	grlv1connect.AccessServiceLogoutProcedure:        {People: Viewer},
	grlv1connect.AccessServiceWhoAmIProcedure:        {People: Viewer},
	grlv1connect.AccessServiceListAccountsProcedure:  {People: Viewer}, // one's own
	grlv1connect.AccessServicePutAccountProcedure:    {People: Admin},
	grlv1connect.AccessServiceDeleteAccountProcedure: {People: Admin},
	grlv1connect.AccessServiceCreateTokenProcedure:   {People: Viewer}, // of one's own rights
	grlv1connect.AccessServiceListTokensProcedure:    {People: Viewer},
	grlv1connect.AccessServiceRevokeTokenProcedure:   {People: Viewer},
	grlv1connect.AccessServiceListSessionsProcedure:  {People: Viewer},
	grlv1connect.AccessServiceEndSessionProcedure:    {People: Viewer},

	"/" + grpchealth.HealthV1ServiceName + "/Check":                       {Anyone: true},
	"/" + grpchealth.HealthV1ServiceName + "/Watch":                       {Anyone: true},
	"/" + grpcreflect.ReflectV1ServiceName + "/ServerReflectionInfo":      {Anyone: true},
	"/" + grpcreflect.ReflectV1AlphaServiceName + "/ServerReflectionInfo": {Anyone: true},
}

// configurators is the rule of what a configurator alone asks of a controller.
// Without certificates it is an admin's token that proves one.
var configurators = Rule{People: Admin, Nodes: byConfigurators}

// byConfigurators lets a configurator read what people do too.
var byConfigurators = map[string][]string{Controller: {Configurator}}

// pages are the paths besides procedures that anyone may ask for. All others
// need a viewer.
var pages = map[string]bool{
	"/healthz": true, "/readyz": true, "/metrics": true, // for probes, which have no account
	"/login": true, "/logout": true, "/first": true,
	"/oidc/start": true, "/oidc/callback": true,
	"/favicon.ico":      true,
	"/hooks/repository": true, // of a configurator, which asks for a secret itself
}

const assets = "/assets/" // of the pages above too

// RuleOf returns the rule of a path: that of the procedure, or of a page. false
// says that the path is none of the procedures, though it looks like one.
func RuleOf(path string) (Rule, bool) {
	if r, ok := rules[path]; ok {
		return r, true
	}
	if isProcedure(path) {
		return Rule{}, false
	}
	if pages[path] || strings.HasPrefix(path, assets) {
		return Rule{Anyone: true}, true
	}
	return Rule{People: Viewer}, true
}

// isProcedure reports whether a path looks like that of a procedure, whose first
// segment is the full name of a service. A path that could be cleaned into one
// looks like one as well.
func isProcedure(path string) bool {
	if strings.Contains(path, "//") {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return strings.Contains(first, ".") && path != "/favicon.ico"
}
