package dev.penstock.runtime.launch.devices;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.CountedKernels;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.model.stage.GptStageFactory;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What kernels hold for themselves on every rank. Libraries are looked for, and kernels asked, when
 * somebody first wants to know, and once. From any thread.
 */
public final class KernelMemory {
    private final RunPlan plan;
    private final GptStageFactory stages;
    private final DeviceSettings device;
    private final List<Integer> lengths;

    private @Nullable CountedKernels kernels;

    /** By place in the first replica: all replicas compute the same. */
    private final Map<RankPlace, Long> known = new HashMap<>();

    private KernelMemory(
            RunPlan plan, GptStageFactory stages, DeviceSettings device, List<Integer> lengths) {
        this.plan = plan;
        this.stages = stages;
        this.device = device;
        this.lengths = List.copyOf(lengths);
    }

    /** Of devices as they would be on this machine. */
    public static KernelMemory of(RunConfig config, RunPlan plan, GptStageFactory stages) {
        return new KernelMemory(
                plan,
                stages,
                ConfiguredDevices.settings(config.device(), plan.ranks()),
                config.lengths());
    }

    public synchronized long ofRank(int rank) {
        RankPlace place = plan.grid().placeOf(rank);
        RankPlace first = new RankPlace(place.pipeline(), place.tensor(), place.context(), 0);
        Long bytes = known.get(first);
        if (bytes == null) {
            CountedKernels before = kernels;
            CountedKernels anew = before == null ? Devices.counting(device) : before.anew();
            kernels = anew;
            bytes = stages.kernelBytes(plan.stagesOf(rank), first, anew, lengths);
            known.put(first, bytes);
        }
        return bytes;
    }
}
