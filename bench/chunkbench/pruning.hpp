/// Which cells of a sweep need no further rounds, since their rank is certain.
///
/// Cells compete within their map: those of the same order, source and threads, which the report
/// draws as one image and marks the best of. The leader of a map is the cell with the highest
/// median. With L the lowest rate that the leader ever had and H the highest of another cell, that
/// cell is pruned if, after n rounds of both,
///
///     n >= 3 and H < 0.9 L, or n = 2 and H < 0.5 L.
///
/// So no round of it came near any round of the leader. If the two were equally fast, three rounds
/// of one would all lie below three of the other once in 20 times, without the margin; two once in
/// 6, so the larger one. The leader is never pruned, nor is a cell within a tenth of it.
#pragma once

#include <span>

namespace bench {

struct Cell;

/// Marks the cells that are pruned, and says why. Only those in status `measuring` can be.
void prune(std::span<Cell> cells);

}  // namespace bench
