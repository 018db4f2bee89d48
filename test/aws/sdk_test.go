package aws_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ebs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"poolkeeper/test/aws/endpoint"
)

// sdk is the library that the driver uses, of today.
type sdk struct {
	t        *testing.T
	services map[string]any
}

func newSDK(t *testing.T, e *endpoint.Endpoint) sdk {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(e.Region), config.WithBaseEndpoint(e.URL),
		config.WithCredentialsProvider(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: e.AccessKey, SecretAccessKey: e.SecretKey}, nil
		})),
		config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil), config.WithRetryMaxAttempts(1))
	if err != nil {
		t.Fatal(err)
	}
	return sdk{t, map[string]any{
		"ec2": ec2.NewFromConfig(cfg), "ebs": ebs.NewFromConfig(cfg), "sts": sts.NewFromConfig(cfg), "service-quotas": servicequotas.NewFromConfig(cfg),
		"s3": s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }),
	}}
}

// call finds the operation by its name: the members of the SDK's types are called as the model has them.
func (s sdk) call(service, operation string, params map[string]any, body []byte) (map[string]any, string) {
	s.t.Helper()
	method := reflect.ValueOf(s.services[service]).MethodByName(operation)
	input := reflect.New(method.Type().In(1).Elem())
	data, err := json.Marshal(params)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(data, input.Interface()); err != nil {
		s.t.Fatalf("%s: %v", operation, err)
	}
	if body != nil {
		name := map[string]string{"s3": "Body", "ebs": "BlockData"}[service]
		input.Elem().FieldByName(name).Set(reflect.ValueOf(bytes.NewReader(body)))
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(s.t.Context()), input})
	if err, failed := reflect.TypeAssert[error](results[1]); failed {
		var known smithy.APIError
		if !errors.As(err, &known) {
			s.t.Fatalf("%s: %v", operation, err)
		}
		return nil, known.ErrorCode()
	}
	if data, err = json.Marshal(results[0].Interface()); err != nil {
		s.t.Fatal(err)
	}
	answer := map[string]any{}
	if err := json.Unmarshal(data, &answer); err != nil {
		s.t.Fatal(err)
	}
	delete(answer, "ResultMetadata")
	if text, is := answer["Output"].(string); is && operation == "GetConsoleOutput" { // the other clients decode it
		plain, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			s.t.Fatal(err)
		}
		answer["Output"] = string(plain)
	}
	return answer, ""
}

// All that the SDK of today sends, and a driver needs, is of the model, or of its list of what is newer.
func TestSDK(t *testing.T) {
	t.Parallel()
	e := endpoint.Start(t, endpoint.Options{Pace: time.Millisecond})
	live(t, e, newSDK(t, e))
}
