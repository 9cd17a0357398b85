package dev.penstock.actors.mirror;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.TrainedState;
import java.util.List;

/** What travels to a mirror. The wire uses the ordinal, in the slice field: append only. */
enum MirrorPart {
    /** A step's reduced gradients, of which the mirror makes the step itself. */
    GRADIENTS {
        @Override
        List<NamedTensor> of(TrainedState state) {
            return state.gradients();
        }
    },
    /** Weights and moments: the whole of a mirror that was lost or is out of step. */
    STATE {
        @Override
        List<NamedTensor> of(TrainedState state) {
            return state.tensors();
        }
    };

    abstract List<NamedTensor> of(TrainedState state);
}
