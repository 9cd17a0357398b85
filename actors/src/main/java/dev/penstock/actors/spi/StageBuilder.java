package dev.penstock.actors.spi;

import dev.penstock.cuda.device.Device;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** Builds stages and their mirrors, all from first values of one place. */
public interface StageBuilder {
    /**
     * Builds the computation of a stage: allocates its memory and fills its parameters.
     *
     * @param stage global stage index
     * @param place of the rank that holds it
     * @param device the device that the shard actor owns; the program allocates in its memory
     * @throws RuntimeException if the first values cannot be read
     */
    StageProgram create(int stage, RankPlace place, Device device);

    /**
     * Builds the stages of a rank, which may share memory that they use by turns. They are closed
     * in reverse order.
     *
     * @param stages global stage indices, rising
     * @param place of the rank that holds them
     * @param device as of {@link #create}
     * @throws RuntimeException if the first values cannot be read; nothing is left behind
     */
    default List<? extends StageProgram> createAll(
            List<Integer> stages, RankPlace place, Device device) {
        List<StageProgram> built = new ArrayList<>();
        try {
            stages.forEach(stage -> built.add(create(stage, place, device)));
            return built;
        } catch (RuntimeException e) {
            built.reversed().forEach(StageProgram::close);
            throw e;
        }
    }

    /**
     * Copies state that belongs to a rank's links, not to a stage, from where first values come
     * from.
     *
     * @param name under which it was saved
     * @param piece what the rank holds of it
     * @param destination receives its elements as F32, dense
     * @return false if there is no such tensor: it starts from zero
     */
    default boolean fill(String name, TensorPiece piece, MemorySegment destination) {
        return false;
    }

    /**
     * Builds a mirror of a stage, from the same first values.
     *
     * @param stage global stage index
     * @param place of the rank that is mirrored
     * @param device of the rank that holds the mirror
     * @throws RuntimeException if the first values cannot be read
     */
    StageMirror mirror(int stage, RankPlace place, Device device);
}
