#include "io/object_address.hpp"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "support/errors.hpp"

namespace chunkio::io {
namespace {

class ObjectAddressTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION",
                             "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"}) {
      ::unsetenv(name);
    }
    ::setenv("HOME", "/nonexistent", 1);
    ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
  }
};

TEST_F(ObjectAddressTest, SchemesAreThoseThatAreRead) {
  for (const char* path : {"http://a/b", "https://a/b", "s3://a/b"}) EXPECT_TRUE(is_remote(path));
  for (const char* path :
       {"", "a/b", "/a/b", "ftp://a/b", "S3://a/b", "file:///a", "x/https://a"}) {
    EXPECT_FALSE(is_remote(path)) << path;
  }
}

TEST_F(ObjectAddressTest, NamesTellNothingSecret) {
  for (const char* url :
       {"https://host/a/b.h5", "https://host/a/b.h5?signature=1", "https://user:pass@host/a/b.h5",
        "https://user@host/a/b.h5#part", "https://host/a/b.h5?next=https://user:pass@other/"}) {
    const ObjectAddress object = find_object(url);
    EXPECT_EQ(object.name, "https://host/a/b.h5") << url;
    EXPECT_EQ(object.url, url);
    EXPECT_EQ(object.keys, nullptr);
  }
  EXPECT_EQ(find_object("http://host:80/a@b.h5").name, "http://host:80/a@b.h5");
}

TEST_F(ObjectAddressTest, BucketsAreHosts) {
  EXPECT_EQ(find_object("s3://bucket/a b/c.h5").url,
            "https://bucket.s3.us-east-1.amazonaws.com/a%20b/c.h5");
  ::setenv("AWS_REGION", "eu-west-3", 1);
  EXPECT_EQ(find_object("s3://a.bucket/c.h5").url,
            "https://s3.eu-west-3.amazonaws.com/a.bucket/c.h5");
  ::setenv("AWS_ENDPOINT_URL", "http://store:9000/", 1);
  const ObjectAddress object = find_object("s3://bucket/\xC3\xB6+1.h5");
  EXPECT_EQ(object.url, "http://store:9000/bucket/%C3%B6%2B1.h5");
  EXPECT_EQ(object.name, "s3://bucket/\xC3\xB6+1.h5");
  EXPECT_EQ(object.region, "eu-west-3");
}

TEST_F(ObjectAddressTest, APlaceIsTheSameForWhoeverMayReadIt) {
  const auto place = [](const std::string& url) { return find_object(url).place; };
  EXPECT_EQ(place("https://me:pass@host/a.h5?X-Amz-Signature=1&X-Amz-Date=2#part"),
            place("https://host/a.h5?X-Amz-Signature=3"));
  EXPECT_EQ(place("https://host/a.h5?sv=1&versionId=7&sig=abc"),
            place("https://host/a.h5?versionId=7&sig=def"));
  EXPECT_NE(place("https://host/get?f=a.h5"), place("https://host/get?f=b.h5"));
  EXPECT_NE(place("https://host/get?f=a.h5"), place("https://host/get"));
  EXPECT_NE(place("https://host/a.h5"), place("https://other/a.h5"));
  ::setenv("AWS_ENDPOINT_URL_S3", "http://store", 1);
  const std::string here = place("s3://bucket/a.h5");
  ::setenv("AWS_ENDPOINT_URL_S3", "http://other", 1);
  EXPECT_NE(place("s3://bucket/a.h5"), here);
}

TEST_F(ObjectAddressTest, WhatNamesNoObjectIsRefused) {
  for (const char* path :
       {"https://", "https://host", "https://host/", "https://host/?a/b", "https:///a",
        "https://user@/a", "s3://", "s3://bucket", "s3:///a", "s3://bucket/"}) {
    test::expect_error(ErrorCode::invalid_argument, {"names no object"},
                       [&] { static_cast<void>(find_object(path)); });
  }
}

}  // namespace
}  // namespace chunkio::io
