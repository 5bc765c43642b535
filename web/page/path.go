package page

import "net/url"

// BucketPath returns the address of the page of a bucket, or of one of its cells.
func BucketPath(bucket, instance, caller string) string {
	v := url.Values{"name": {bucket}}
	if instance != "" {
		v.Set("instance", instance)
	}
	if caller != "" {
		v.Set("caller", caller)
	}
	return "/bucket?" + v.Encode()
}

// CapPath returns the address of the form that caps what is named; what is not
// known is "".
func CapPath(service, caller, procedure string) string {
	v := url.Values{"service": {service}}
	if caller != "" {
		v.Set("caller", caller)
	}
	if procedure != "" {
		v.Set("procedure", procedure)
	}
	return "/caps?" + v.Encode()
}

// ExplainPath returns the address of the page that explains a request.
func ExplainPath(service, caller, procedure string) string {
	v := url.Values{"service": {service}}
	if caller != "" {
		v.Set("caller", caller)
	}
	if procedure != "" {
		v.Set("procedure", procedure)
	}
	return "/explain?" + v.Encode()
}
