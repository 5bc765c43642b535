package controller

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
)

// alertService serves grlv1connect.AlertServiceHandler.
type alertService struct{ *Controller }

func (alertService) ListAlerts(context.Context, *grlv1.ListAlertsRequest) (*grlv1.ListAlertsResponse, error) {
	return &grlv1.ListAlertsResponse{}, nil
}

func (alertService) MuteAlert(context.Context, *grlv1.MuteAlertRequest) (*grlv1.MuteAlertResponse, error) {
	return nil, connect.NewError(connect.CodeUnimplemented, errors.New("not yet"))
}
