package dev.penstock.actors.collective.wire;

import dev.penstock.actors.collective.FlatTensor;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.cuda.device.Tensor;

/** The blocks in which the parts of a tensor travel. The last of a part may be shorter. */
final class PartBlocks {
    private final Tensor whole;
    private final ShardMap map;
    private final long blockElements;

    /** By part: blocks of all parts before it. */
    private final int[] before;

    PartBlocks(Tensor whole, ShardMap map) {
        this.whole = whole;
        this.map = map;
        this.blockElements = BlockChannel.BLOCK_BYTES / whole.type().bytes();
        this.before = new int[map.parts() + 1];
        for (int part = 0; part < map.parts(); part++) {
            before[part + 1] = before[part] + of(part);
        }
    }

    /** How many a part has. */
    int of(int part) {
        return Math.toIntExact((map.count(part) + blockElements - 1) / blockElements);
    }

    /** How many there are. */
    int all() {
        return before[map.parts()];
    }

    /** The number among all of a part's first. */
    int first(int part) {
        return before[part];
    }

    /** Whose part a block belongs to, by its number among all. */
    int partOf(int block) {
        int part = 0;
        while (before[part + 1] <= block) {
            part++;
        }
        return part;
    }

    /** A block by its number among all. */
    Tensor tensor(int block) {
        int part = partOf(block);
        return tensor(part, block - before[part]);
    }

    /** A block of a part. */
    Tensor tensor(int part, int block) {
        long first = map.from(part) + block * blockElements;
        return FlatTensor.stretch(whole, first, Math.min(blockElements, map.to(part) - first));
    }
}
