package dev.penstock.schedules.ir;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The channels of an order by number. In one pipeline a number follows from the stage alone: 2s
 * brings stage s its inputs, 2s + 1 its gradients, and the two beyond the ends are no channels. In
 * a wired order only those have a number that some micro-batch takes.
 */
public final class Channels {
    /** No channel: beyond the ends of the pipeline, or of a unit that does not exist. */
    public static final int NONE = -1;

    private final PipelineShape shape;
    private final Optional<Wiring> wiring;
    private final List<Channel> wired = new ArrayList<>();

    /** By 2 x (stage x micro-batches + micro-batch), activations before gradients; wired only. */
    private final int[] numbers;

    public Channels(Schedule schedule) {
        this.shape = schedule.shape();
        this.wiring = schedule.placement().wiring();
        this.numbers = new int[wiring.isEmpty() ? 0 : 2 * shape.stages() * shape.microBatches()];
        wiring.ifPresent(this::number);
    }

    private void number(Wiring peers) {
        Map<Channel, Integer> known = new HashMap<>();
        for (int stage = 0; stage < shape.stages(); stage++) {
            for (int m = 0; m < shape.microBatches(); m++) {
                int to = peers.peerOf(m, stage);
                numbers[2 * place(stage, m)] =
                        stage == 0
                                ? NONE
                                : number(
                                        Channel.activationsInto(stage)
                                                .between(peers.peerOf(m, stage - 1), to),
                                        known);
                numbers[2 * place(stage, m) + 1] =
                        stage == shape.stages() - 1
                                ? NONE
                                : number(
                                        Channel.gradientsInto(stage)
                                                .between(peers.peerOf(m, stage + 1), to),
                                        known);
            }
        }
    }

    private int number(Channel channel, Map<Channel, Integer> known) {
        return known.computeIfAbsent(
                channel,
                added -> {
                    wired.add(added);
                    return wired.size() - 1;
                });
    }

    private int place(int stage, int microBatch) {
        return stage * shape.microBatches() + microBatch;
    }

    /** How many numbers there are. */
    public int count() {
        return wiring.isEmpty() ? 2 * shape.stages() : wired.size();
    }

    /** The channel of a number; empty for the two beyond the ends of one pipeline. */
    public Optional<Channel> at(int number) {
        if (wiring.isPresent()) {
            return Optional.of(wired.get(number));
        }
        int stage = number / 2;
        if (number % 2 == 0) {
            return stage == 0 ? Optional.empty() : Optional.of(Channel.activationsInto(stage));
        }
        return stage == shape.stages() - 1
                ? Optional.empty()
                : Optional.of(Channel.gradientsInto(stage));
    }

    /** The number of the channel that brings a unit its input. */
    public int activationsInto(int stage, int microBatch) {
        boolean there = stage > 0 && stage < shape.stages() && microBatch < shape.microBatches();
        return there ? number(2 * stage, 2 * place(stage, microBatch)) : NONE;
    }

    /** The number of the channel that brings a unit the gradient of its output. */
    public int gradientsInto(int stage, int microBatch) {
        boolean there =
                stage >= 0 && stage < shape.stages() - 1 && microBatch < shape.microBatches();
        return there ? number(2 * stage + 1, 2 * place(stage, microBatch) + 1) : NONE;
    }

    private int number(int ofStage, int ofMicroBatch) {
        return wiring.isEmpty() ? ofStage : numbers[ofMicroBatch];
    }
}
