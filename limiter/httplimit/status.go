package httplimit

import "google.golang.org/protobuf/encoding/protowire"

// The messages of a refusal are encoded by hand: three small ones whose fields
// never change do not earn reflection on each drop. Tests decode them with the
// generated types.

const (
	resourceExhausted = "8" // google.rpc.Code, in decimal

	retryInfoType = "google.rpc.RetryInfo"
	errorInfoType = "google.rpc.ErrorInfo"

	dropReason = "GRL_DROP"
	dropDomain = "grl"
)

// status encodes the google.rpc.Status.
func (m refusal) status() []byte {
	b := protowire.AppendTag(nil, 1, protowire.VarintType) // code
	b = protowire.AppendVarint(b, 8)
	b = appendString(b, 2, m.detail) // message
	b = appendBytes(b, 3, packAny(retryInfoType, m.retryInfo()))
	return appendBytes(b, 3, packAny(errorInfoType, m.errorInfo()))
}

// retryInfo encodes the google.rpc.RetryInfo.
func (m refusal) retryInfo() []byte {
	duration := protowire.AppendTag(nil, 1, protowire.VarintType) // seconds
	duration = protowire.AppendVarint(duration, uint64(m.retrySeconds))
	return appendBytes(nil, 1, duration) // retry_delay
}

// errorInfo encodes the google.rpc.ErrorInfo.
func (m refusal) errorInfo() []byte {
	b := appendString(nil, 1, dropReason)
	b = appendString(b, 2, dropDomain)
	b = appendBytes(b, 3, mapEntry("bucket", m.bucket)) // metadata
	return appendBytes(b, 3, mapEntry("owner", m.owner))
}

func mapEntry(key, value string) []byte {
	return appendString(appendString(nil, 1, key), 2, value)
}

// packAny encodes a google.protobuf.Any.
func packAny(messageType string, message []byte) []byte {
	return appendBytes(appendString(nil, 1, "type.googleapis.com/"+messageType), 2, message)
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}
