"""S3, SQS and CloudFront on this machine: a moto server with the resources of the pipeline."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

REGION = "eu-west-1"


@contextmanager
def local_aws() -> Iterator[None]:
    """Run the server, and point boto3 and Forge at it with environment variables."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_DEFAULT_REGION": REGION,
        # moto requires credentials but accepts any.
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }
    try:
        os.environ |= _create_resources()
        yield
    finally:
        server.stop()


def _create_resources() -> dict[str, str]:
    import boto3

    s3, sqs = boto3.client("s3"), boto3.client("sqs")
    s3.create_bucket(Bucket="images", CreateBucketConfiguration={"LocationConstraint": REGION})
    queue = sqs.create_queue(QueueName="images")["QueueUrl"]
    distribution = boto3.client("cloudfront").create_distribution(
        DistributionConfig=_distribution("images")
    )
    return {
        "IMAGES_BUCKET": "images",
        "IMAGES_DISTRIBUTION": distribution["Distribution"]["Id"],
        "FORGE_TRANSPORT_KIND": "sqs",
        "FORGE_TRANSPORT_SQS_QUEUE_URL": queue,
        "FORGE_TRANSPORT_SQS_WAIT": "1s",  # so that a worker stops quickly
    }


def _distribution(bucket: str) -> dict[str, Any]:
    origin = {
        "Id": "uploads",
        "DomainName": f"{bucket}.s3.amazonaws.com",
        "S3OriginConfig": {"OriginAccessIdentity": ""},
    }
    return {
        "CallerReference": "images",
        "Comment": "thumbnails",
        "Enabled": True,
        "Origins": {"Quantity": 1, "Items": [origin]},
        "DefaultCacheBehavior": {
            "TargetOriginId": "uploads",
            "ViewerProtocolPolicy": "allow-all",
            "MinTTL": 0,
            "ForwardedValues": {"QueryString": False, "Cookies": {"Forward": "none"}},
        },
    }
