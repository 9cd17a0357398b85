package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.ForwardingStage;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * Keeps a book of what a stage does with its gradients: which units' went into the sum of a step,
 * and the checksums of trained parameters and optimizer state before and after each update.
 */
final class AuditedStage extends ForwardingStage {
    /** A device's memory is copied to the host in such pieces. */
    private static final long BLOCK_BYTES = 8L << 20;

    private final AuditTrail trail;
    private final AuditTrail.Holder holder;
    private final List<WorkUnit> units = new ArrayList<>();
    private StepKind kind = StepKind.EVALUATE;
    private long step;

    /** Micro-batches that an earlier pass of the step has folded. */
    private BitSet kept = new BitSet();

    AuditedStage(StageProgram stage, RankPlace place, AuditTrail trail) {
        super(stage);
        this.trail = trail;
        this.holder = new AuditTrail.Holder(stage.stage(), place);
    }

    @Override
    public void beginStep(StepKind newKind, long newStep) {
        kind = newKind;
        step = newStep;
        units.clear();
        kept = new BitSet();
        super.beginStep(newKind, newStep);
    }

    @Override
    public void resumeStep(long newStep) {
        kept = newStep == step ? folded() : new BitSet();
        kind = StepKind.TRAIN;
        step = newStep;
        units.removeIf(unit -> !kept.get(unit.microBatch()));
        super.resumeStep(newStep);
    }

    private void ended(WorkUnit unit) {
        if (!kept.get(unit.microBatch())) {
            units.add(unit);
        }
    }

    @Override
    public void backward(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        super.backward(unit, input, outputGradient, inputGradient);
        ended(unit);
    }

    @Override
    public void backwardWeight(WorkUnit unit) {
        super.backwardWeight(unit);
        ended(unit);
    }

    /** The other op of a pair writes nothing into the book. */
    @Override
    public StageProgram beside() {
        StageProgram beside = super.beside();
        return beside.equals(this)
                ? this
                : new ForwardingStage(beside) {
                    @Override
                    public void backward(
                            WorkUnit unit,
                            @Nullable Tensor input,
                            @Nullable Tensor outputGradient,
                            @Nullable Tensor inputGradient) {
                        super.backward(unit, input, outputGradient, inputGradient);
                        ended(unit);
                    }

                    @Override
                    public void backwardWeight(WorkUnit unit) {
                        super.backwardWeight(unit);
                        ended(unit);
                    }
                };
    }

    @Override
    public StepResult finishStep() {
        StepResult result = super.finishStep();
        if (kind == StepKind.TRAIN) {
            trail.add(holder, new AuditTrail.Summed(step, units));
        }
        return result;
    }

    @Override
    public void update(long committedStep, double clipFactor) {
        long before = checksum();
        super.update(committedStep, clipFactor);
        trail.add(holder, new AuditTrail.Applied(committedStep, before, checksum()));
    }

    private long checksum() {
        var crc = new CRC32C();
        for (NamedTensor tensor : trained().tensors()) { // also what others count
            update(crc, tensor.tensor());
        }
        return crc.getValue();
    }

    private static void update(CRC32C crc, Tensor dense) {
        if (dense.buffer().isHostMemory()) {
            crc.update(dense.segment().asByteBuffer());
            return;
        }
        byte[] block = new byte[(int) Math.min(BLOCK_BYTES, dense.bytes())];
        for (long at = 0; at < dense.bytes(); at += BLOCK_BYTES) {
            int bytes = (int) Math.min(BLOCK_BYTES, dense.bytes() - at);
            MemorySegment part = MemorySegment.ofArray(block).asSlice(0, bytes);
            dense.buffer().read(dense.offsetBytes() + at, part);
            crc.update(block, 0, bytes);
        }
    }
}
