package endpoint

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"poolkeeper/test/aws/model"
)

// Doc is a structure of the model.
type Doc = model.Doc

// call is one request under way. The endpoint is locked meanwhile.
type call struct {
	e         *Endpoint
	w         *world
	service   string
	op        string
	in        Doc
	now       time.Time
	principal string
	length    int // of the body
}

// handler does what one operation does.
type handler func(*call) (Doc, error)

// handlers are the operations that there are, by service.
func handlers(service string) map[string]handler {
	switch service {
	case "ec2":
		return ec2Handlers
	case "s3":
		return s3Handlers
	case "ebs":
		return ebsHandlers
	case "sts":
		return stsHandlers
	case "sso":
		return ssoHandlers
	case "ssooidc":
		return oidcHandlers
	}
	return quotaHandlers
}

// bodyOf reads what a request sends: at once where its length is told, which most are.
func bodyOf(r *http.Request) ([]byte, error) {
	const most = 64 << 20
	if r.ContentLength < 0 || r.ContentLength > most {
		return io.ReadAll(r.Body)
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}

// ServeHTTP answers one request.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := bodyOf(r)
	if err != nil {
		return // the client went away
	}
	scope, known := scopeOf(r)
	if !known {
		scope, known = unsigned(r, body)
	}
	service, err := model.Load(scope.service)
	if !known || err != nil {
		http.Error(w, "no signature, or of a service that is not here: "+r.Header.Get("Authorization"), http.StatusForbidden)
		e.refuse(r, "no signature of a service that is here")
		return
	}
	answer, lost, held := e.answer(service, scope, r, body)
	if lost {
		panic(http.ErrAbortHandler)
	}
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done(): // the client went away
			return
		}
	}
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(answer.Body) // the client may be gone
	}
}

// answer does what is asked for, one request at a time, and says whether its answer gets lost, or until when it is held.
func (e *Endpoint) answer(service *model.Service, scope scope, r *http.Request, body []byte) (*model.Answer, bool, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now().UTC()
	e.world.settle(now)
	requestID := fmt.Sprintf("00000000-0000-4000-8000-%012d", len(e.records)+1)
	op, result, lost, err := e.do(service, scope, r, body, now)
	var answer *model.Answer
	if err == nil {
		if answer, err = service.Answer(op, result, requestID); err != nil {
			e.t.Errorf("the endpoint would answer what Amazon's model does not have: %v", err)
			err = &model.Fault{Code: "InternalError", Message: err.Error(), Status: http.StatusInternalServerError}
		}
	}
	if err != nil {
		var fault *model.Fault
		if !errors.As(err, &fault) {
			fault = &model.Fault{Code: "InternalError", Message: err.Error(), Status: http.StatusInternalServerError}
		}
		if fault.Model {
			e.refused = append(e.refused, r.Method+" "+r.URL.RequestURI()+" "+fault.Error())
		}
		if n := len(e.records); n > 0 && op != nil && e.records[n-1].open {
			e.records[n-1].Fault = fault.Code
		}
		answer = service.Fault(fault, requestID)
	}
	if n := len(e.records); n > 0 {
		e.records[n-1].open = false
	}
	answer.Header.Set("X-Amzn-Requestid", requestID)
	answer.Header.Set("X-Amz-Request-Id", requestID)
	if op == nil {
		return answer, lost, nil
	}
	return answer, lost, e.faults.held[op.Name]
}

// do checks and does one request.
func (e *Endpoint) do(service *model.Service, scope scope, r *http.Request, body []byte, now time.Time) (*model.Operation, Doc, bool, error) {
	principal, err := "nobody", error(nil)
	if scope.signature != "" {
		principal, err = e.authenticate(scope, r, body, now)
	}
	if err != nil {
		return nil, nil, false, err
	}
	if body, err = unchunked(r, body); err != nil {
		return nil, nil, false, err
	}
	op, in, err := service.Request(r, body)
	if err != nil {
		return op, nil, false, err
	}
	do, here := handlers(service.Name)[op.Name]
	if !here {
		return op, nil, false, &model.Fault{
			Code: "UnsupportedOperation", Message: op.Name + " is not in the endpoint of the tests", Status: http.StatusNotImplemented, Model: true,
		}
	}
	e.records = append(e.records, Request{Service: service.Name, Operation: op.Name, Action: action(service.Name, op.Name), In: in, At: now, open: true})
	c := &call{e: e, w: e.world, service: service.Name, op: op.Name, in: in, now: now, principal: principal, length: len(body)}
	if err := c.checks(r, body); err != nil {
		return op, nil, false, err
	}
	result, err := do(c)
	if result == nil {
		result = Doc{}
	}
	return op, result, e.faults.loses(op.Name), err
}

func (e *Endpoint) refuse(r *http.Request, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused = append(e.refused, r.Method+" "+r.URL.RequestURI()+": "+why)
}

// fault is an error of a service, with the status that the real one has for it.
func fault(code, format string, args ...any) error {
	status, special := map[string]int{
		"InsufficientInstanceCapacity": 500, "InternalError": 500, "InsufficientHostCapacity": 500, "SpotMaxPriceTooLow": 400,
		"RequestLimitExceeded": 503, "SlowDown": 503, "ServiceUnavailable": 503, "Unavailable": 503, "DryRunOperation": 412,
		"UnauthorizedOperation": 403, "AccessDenied": 403, "AccessDeniedException": 403, "SignatureDoesNotMatch": 403,
		"AuthFailure": 401, "InvalidClientTokenId": 403, "UnauthorizedException": 401, "ForbiddenException": 403, "InvalidAccessKeyId": 403, "ExpiredToken": 400,
		"NoSuchKey": 404, "NoSuchBucket": 404, "NoSuchUpload": 404, "ResourceNotFoundException": 404, "TooManyRequestsException": 400,
		"BucketAlreadyOwnedByYou": 409, "RequestExpired": 400,
	}[code]
	if !special {
		status = http.StatusBadRequest
	}
	return &model.Fault{Code: code, Message: fmt.Sprintf(format, args...), Status: status}
}
