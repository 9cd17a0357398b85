package dev.penstock.actors.fault;

import dev.penstock.actors.dataplane.FrameFaults;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.fault.Fault.HarmFrames;
import java.util.List;

/**
 * Harms frames by chance while training steps of its faults are worked on. What becomes of a frame
 * depends on the seed, its tensor and its number alone, so a run is harmed the same way again.
 */
final class SeededFrameFaults implements FrameFaults {
    private final List<HarmFrames> harms;
    private volatile long step = -1;

    SeededFrameFaults(List<HarmFrames> harms) {
        this.harms = List.copyOf(harms);
    }

    /** Whether any frame can ever be harmed. */
    boolean harm() {
        return !harms.isEmpty();
    }

    /** This process works on a training step; -1 for anything else. */
    void atStep(long newStep) {
        step = newStep;
    }

    @Override
    public Fate of(FrameKey tensor, long frame) {
        long now = step;
        for (HarmFrames harm : harms) {
            if (harm.steps().contains(now) && chance(harm.seed(), tensor, frame) < harm.rate()) {
                return fate(harm);
            }
        }
        return Fate.PASS;
    }

    private static Fate fate(HarmFrames harm) {
        return switch (harm.harm()) {
            case DROP -> Fate.DROP;
            case DELAY -> new Fate.Delay(harm.delay().toNanos());
            case DUPLICATE -> Fate.DUPLICATE;
            case CORRUPT -> Fate.CORRUPT;
        };
    }

    /** 0 to 1, evenly; an enum's own hash would be another in every process. */
    private static double chance(long seed, FrameKey tensor, long frame) {
        long bits = mixed(seed);
        bits = mixed(bits ^ tensor.channel().kind().ordinal());
        bits = mixed(bits ^ tensor.channel().fromStage());
        bits = mixed(bits ^ tensor.channel().stage());
        bits = mixed(bits ^ tensor.step());
        bits = mixed(bits ^ tensor.microBatch());
        bits = mixed(bits ^ tensor.slice());
        bits = mixed(bits ^ frame);
        return (bits >>> 11) * 0x1.0p-53;
    }

    /** The finalizer of SplitMix64 (Steele, Lea, Flood 2014, figure 13). */
    private static long mixed(long state) {
        long z = state + 0x9e3779b97f4a7c15L;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }
}
