#include "harness/memory_limit.hpp"

#include <string>

namespace bench {

MemoryLimit::MemoryLimit(std::int64_t bytes, const std::shared_ptr<ControlGroup>& beside)
    : group_(make_group(
          "memory",
          [bytes](const Hierarchy& hierarchy) {
            return ControlGroup::Limit{
                hierarchy.version == 1 ? "memory.limit_in_bytes" : "memory.max",
                std::to_string(bytes)};
          },
          beside)) {}

}  // namespace bench
