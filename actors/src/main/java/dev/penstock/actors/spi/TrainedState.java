package dev.penstock.actors.spi;

import java.util.List;

/**
 * Everything that a stage's optimizer reads and writes, of every parameter that the stage holds and
 * trains: also of those that another stage counts; of sharded ones, its own parts; nothing where
 * none is trained. Parameters may lie together in one tensor. A stage and its {@link StageMirror}
 * list the same names and shapes in the same order. Dense F32 tensors.
 */
public interface TrainedState {
    /** The gradients; complete after {@link StageProgram#finishStep}. */
    List<NamedTensor> gradients();

    /** Weights and both moments. */
    List<NamedTensor> tensors();

    /**
     * To be called after {@link #tensors}, and perhaps {@link #gradients}, were overwritten from
     * outside: brings along what follows from them, such as rounded copies.
     */
    void replaced();
}
