package dev.penstock.runtime.model.parameters;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Room for the gathered groups of two stages at a time, whatever their sizes: the groups of one lie
 * at the beginning and those of the other at the end. Two neighbours never need more than the
 * largest two together, and no stage leaves a gap that is too small for a later one.
 *
 * <pre>
 *   stages 0, 1   | wte wpe                  | h.0 |
 *   stages 1, 2   | h.1 |                    | h.0 |
 *   stages 2, 3   | h.1 |                    | h.2 |
 * </pre>
 *
 * <p>The end of the room that a stage has is free again when all its groups are.
 */
public final class NeighbourRoom {
    private static final int LINE_BYTES = 64;

    /** An end of the room. */
    private static final class End {
        private int stage;
        private int rows;
        private long bytes;

        void giveBack() {
            rows--;
            if (rows == 0) {
                bytes = 0;
            }
        }
    }

    /** The bytes that programs need. */
    public static final class Needs {
        private final List<End> ends = List.of(new End(), new End());
        private boolean twoAtATime = true;
        private long most;

        /** Takes note that a stage takes rows. */
        public void take(int stage, Collection<RowPool.Kind> kinds) {
            for (RowPool.Kind kind : kinds) {
                End end = endFor(ends, stage);
                if (end == null) {
                    twoAtATime = false;
                    return;
                }
                end.rows++;
                end.bytes += bytes(kind);
            }
            most = Math.max(most, ends.getFirst().bytes + ends.getLast().bytes);
        }

        /** Takes note that a stage gives them back. */
        public void giveBack(int stage, Collection<RowPool.Kind> kinds) {
            for (RowPool.Kind _ : kinds) {
                heldBy(ends, stage).ifPresent(End::giveBack);
            }
        }

        /** Takes note that no more than two stages at a time is not certain. */
        public void ofAnyOrder() {
            twoAtATime = false;
        }

        /** Returns whether two stages at a time are all that need room. */
        public boolean twoAtATime() {
            return twoAtATime && most > 0;
        }
    }

    private final Map<ParameterGroup, Integer> stages;
    private final Tensor whole;
    private final long bytes;
    private final List<End> ends = List.of(new End(), new End());

    /**
     * @param stages the stage of each group
     */
    public NeighbourRoom(DeviceScope scope, Needs needs, Map<ParameterGroup, Integer> stages) {
        this.stages = Map.copyOf(stages);
        bytes = needs.most;
        int lines = Math.toIntExact(needs.most / LINE_BYTES);
        whole = scope.tensor("gathered", DType.F32, lines, LINE_BYTES / DType.F32.bytes());
    }

    /**
     * Takes a row for a group.
     *
     * @param what names its user, in messages
     */
    Tensor take(ParameterGroup group, RowPool.Kind kind, String what) {
        End end = endFor(ends, stageOf(group));
        long more = bytes(kind);
        long free = bytes - ends.getFirst().bytes - ends.getLast().bytes;
        if (end == null || more > free) {
            throw new IllegalStateException(
                    "no room for %s: more is held at a time than planned".formatted(what));
        }
        long from = end == ends.getFirst() ? end.bytes : bytes - end.bytes - more;
        end.rows++;
        end.bytes += more;
        int elements = Math.toIntExact(kind.elements());
        return new Tensor(
                whole.buffer(), whole.offsetBytes() + from, kind.type(), 1, elements, elements);
    }

    void giveBack(ParameterGroup group) {
        heldBy(ends, stageOf(group)).orElseThrow().giveBack();
    }

    private int stageOf(ParameterGroup group) {
        Integer stage = stages.get(group);
        if (stage == null) {
            throw new IllegalArgumentException(group.name() + " belongs to another room");
        }
        return stage;
    }

    private static Optional<End> heldBy(List<End> ends, int stage) {
        return ends.stream().filter(end -> end.rows > 0 && end.stage == stage).findFirst();
    }

    /** Returns the end that a stage has, or else one that is free; null if there is none. */
    private static @Nullable End endFor(List<End> ends, int stage) {
        End end =
                heldBy(ends, stage)
                        .or(() -> ends.stream().filter(each -> each.rows == 0).findFirst())
                        .orElse(null);
        if (end != null) {
            end.stage = stage;
        }
        return end;
    }

    private static long bytes(RowPool.Kind kind) {
        long bytes = kind.elements() * kind.type().bytes();
        return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    }
}
