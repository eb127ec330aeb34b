"""The jars of storage services other than S3. Iceberg's Spark runtime has the classes that use them.

Azure needs the SDK for Data Lake Storage with the HTTP client of Java; Spark has its other dependencies. Iceberg's own
bundles contain the same SDKs. The versions are a tested combination, see docs/guides/azure-and-google.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakewright_spark.catalog.warehouse import StorageKind

BUNDLES: Mapping[StorageKind, str] = {"adls": "iceberg-azure-bundle", "gcs": "iceberg-gcp-bundle"}
"""Iceberg's jar with the SDK of a service. A class path that names it replaces the jars of this module."""

PACKAGES: Mapping[StorageKind, tuple[str, ...]] = {
    "adls": (
        "com.azure:azure-core:1.57.1",
        "com.azure:azure-core-http-jdk-httpclient:1.1.3",
        "com.azure:azure-json:1.5.1",
        "com.azure:azure-storage-blob:12.33.3",
        "com.azure:azure-storage-common:12.32.2",
        "com.azure:azure-storage-file-datalake:12.26.3",
        "com.azure:azure-storage-internal-avro:12.18.2",
        "com.azure:azure-xml:1.2.1",
        "io.projectreactor:reactor-core:3.7.14",
        "org.reactivestreams:reactive-streams:1.0.4",
    ),
    "gcs": ("org.apache.iceberg:iceberg-gcp-bundle:1.11.0",),
}
"""Maven coordinates by service."""

SHA256: Mapping[str, str] = {
    "com.azure:azure-core:1.57.1": "91d80ad97f04040d522bb1db16b0f507fd5ffecd4d6178ad9b9764360c02eedb",
    "com.azure:azure-core-http-jdk-httpclient:1.1.3": (
        "7b3768324421c60c783540f9a9300903f4b546ed6ff51b6f8a225840fbc61e99"
    ),
    "com.azure:azure-json:1.5.1": "bad21d5eb306d82b85951b58a1d9e501a9b09970e452bee6d4d445fd5a91c519",
    "com.azure:azure-storage-blob:12.33.3": "5830fe102d9f7746332adadada3a6ac5db5e8a819b4a59ace100be5dde8c29f1",
    "com.azure:azure-storage-common:12.32.2": "8f324c8a04a088f32c753c4885b9962ccb5fd2f326e4b00096450d6474905947",
    "com.azure:azure-storage-file-datalake:12.26.3": "5fb39430caff8a2655292231aae7e06efaa23415bdda9d2c373cbd05b89cdab8",
    "com.azure:azure-storage-internal-avro:12.18.2": "73a54dcbb184e61ec00b95d2564287fc2b983ed77e4014e231faa94a9d313d5c",
    "com.azure:azure-xml:1.2.1": "08b458481b656554605215ab0b165f68e6025359e52bea4736d032328d40ba3b",
    "io.projectreactor:reactor-core:3.7.14": "597d9510599ab737e1860dd85c10ae29b38e92c81ef86b5d8f486586a8efcf70",
    "org.reactivestreams:reactive-streams:1.0.4": "f75ca597789b3dac58f61857b9ac2e1034a68fa672db35055a8fb4509e325f28",
    "org.apache.iceberg:iceberg-gcp-bundle:1.11.0": "d9248fc76d94d232e153bf760631229cd3b7c6bc3b20f47d4b2caffe011a8a2f",
}
"""SHA-256 of each jar."""
