package dev.penstock.actors.collective.shared;

import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/** One collective of members that share memory: how far each of them is. Any thread. */
final class Meeting {
    /** It lays its tensor open to the others. */
    static final int HERE = 1;

    /** Its part is the sum. */
    static final int SUMMED = 2;

    /** It touches no other member's tensor any more. */
    static final int FINISHED = 3;

    private final CollectiveKind kind;
    private final long elements;
    private final DType type;
    private final AtomicReferenceArray<@Nullable Tensor> tensors;
    private final AtomicIntegerArray progress;

    Meeting(CollectiveKind kind, ShardMap map, DType type) {
        this.kind = kind;
        this.type = type;
        this.elements = map.elements();
        this.tensors = new AtomicReferenceArray<>(map.parts());
        this.progress = new AtomicIntegerArray(map.parts());
    }

    void open(int member, CollectiveKind wanted, Tensor tensor) {
        if (wanted != kind || tensor.elements() != elements || tensor.type() != type) {
            throw new IllegalStateException(
                    "members began different collectives: expected %s of %d %s, got %s of %d %s"
                            .formatted(
                                    kind,
                                    elements,
                                    type,
                                    wanted,
                                    tensor.elements(),
                                    tensor.type()));
        }
        tensors.set(member, tensor);
        reach(member, HERE);
    }

    void reach(int member, int stage) {
        progress.set(member, stage);
    }

    boolean has(int member, int stage) {
        return progress.get(member) >= stage;
    }

    /** The first member that is not so far; -1 if all are. */
    int firstBehind(int stage) {
        for (int member = 0; member < progress.length(); member++) {
            if (progress.get(member) < stage) {
                return member;
            }
        }
        return -1;
    }

    /** Of a member that is {@link #HERE}. */
    Tensor tensor(int member) {
        Tensor tensor = tensors.get(member);
        if (tensor == null) {
            throw new IllegalStateException("member %d is not here".formatted(member));
        }
        return tensor;
    }
}
