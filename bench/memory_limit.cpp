#include "memory_limit.hpp"

#include <string>

namespace bench {

MemoryLimit::MemoryLimit(std::int64_t bytes)
    : group_(make_group("memory", [bytes](const Hierarchy& hierarchy) {
        return ControlGroup::Limit{hierarchy.version == 1 ? "memory.limit_in_bytes" : "memory.max",
                                   std::to_string(bytes)};
      })) {}

}  // namespace bench
