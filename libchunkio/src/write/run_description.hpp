/// Which run began a file, as a text to be kept and compared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <chunkio/dataset_writer.hpp>

namespace chunkio::write {

/// XXH3-64 of the values of each field, by its name.
using FieldDigests = std::map<std::string, std::uint64_t>;
[[nodiscard]] FieldDigests digest_fields(const std::vector<FieldData>& fields);

/// Everything that makes two runs write the same file, but for the images themselves: the
/// caller's identity, and the specification, its longer parts as digests.
/// \param filter  as ChunkFilter::to_string().
/// \throws Error invalid_argument if `identity` is no JSON object of strings, numbers and booleans.
[[nodiscard]] std::string describe_run(const std::string& identity, const DatasetSpec& spec,
                                       const FieldDigests& fields, std::int64_t chunk_samples,
                                       const std::string& filter = "none");

/// Whether `now` goes on with what `before` began as `target`.
/// \throws Error invalid_argument that names the first difference, corrupt_data if `before` is no
///         description; both say how to start again.
void check_same_run(const std::string& before, const std::string& now, const std::string& target);

/// In what two descriptions differ first, as a clause: "seed was 7 and is now 8"; absent if they
/// are the same.
/// \throws Error corrupt_data if `before` is no description.
[[nodiscard]] std::optional<std::string> first_difference(const std::string& before,
                                                          const std::string& now);

}  // namespace chunkio::write
