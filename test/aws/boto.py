"""Does by boto3 what each line asks for, and prints the answer, or the code of the error."""

import base64
import datetime
import json
import sys

import boto3
import botocore.config
import botocore.exceptions


def plain(value):
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    raise TypeError(repr(value))


clients = {}
config = botocore.config.Config(retries={"total_max_attempts": 1})
for line in sys.stdin:
    call = json.loads(line)
    client = clients.get(call["service"])
    if client is None:  # to make one takes longer than a call
        client = clients[call["service"]] = boto3.client(call["service"], endpoint_url=sys.argv[1], config=config)
    params = call["params"]
    if call["body"] is not None:
        name = {"s3": "Body", "ebs": "BlockData"}[call["service"]]
        params[name] = base64.b64decode(call["body"])
    said = {"answer": {}, "code": ""}
    try:
        said["answer"] = getattr(client, call["operation"])(**params)
        said["answer"].pop("ResponseMetadata", None)
    except botocore.exceptions.ClientError as error:
        said["code"] = error.response["Error"]["Code"]
    print(json.dumps(said, default=plain), flush=True)
