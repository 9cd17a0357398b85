package dev.penstock.runtime.launch.devices;

import dev.penstock.actors.spi.DeviceFactory;
import dev.penstock.actors.spi.DeviceFailureListener;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceLostException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.runtime.config.run.DeviceKind;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives each rank of this machine a GPU: in turn, or the one that the configuration names. One that
 * the run has lost is not given again: its ranks share those that no rank has by its turn, or else
 * the others.
 */
public final class RankGpus implements DeviceFactory, DeviceFailureListener {
    private static final Logger LOG = LoggerFactory.getLogger(RankGpus.class);

    private final DeviceKind kind;
    private final DeviceSettings settings;
    private final int ranks;
    private final Optional<LostGpus> lost;
    private final Map<Integer, Gpus.Gpu> given = new ConcurrentHashMap<>();

    /**
     * @param lost where losses are noted; empty where there is no run
     */
    RankGpus(DeviceKind kind, DeviceSettings settings, int ranks, Optional<LostGpus> lost) {
        this.kind = kind;
        this.settings = settings;
        this.ranks = ranks;
        this.lost = lost;
    }

    @Override
    public Device open(int rank) {
        List<Gpus.Gpu> all = Devices.gpus();
        List<Gpus.Gpu> usable = new ArrayList<>(all);
        usable.removeIf(gpu -> !isWanted(gpu) || isLost(gpu));
        if (usable.isEmpty()) {
            requireNoneLost(all);
            // what there is not is refused in the device's words
            return Devices.open(settings.withGpu(kind.gpu().orElse(0)));
        }
        while (true) {
            Gpus.Gpu gpu = choose(usable, all.size(), rank);
            try {
                Device device = Devices.open(settings.withGpu(gpu.index()));
                given.put(rank, gpu);
                return device;
            } catch (DeviceLostException e) {
                usable.remove(gpu);
                if (usable.isEmpty()) {
                    throw e;
                }
                LOG.warn("rank {} goes on to another GPU", rank, e);
            }
        }
    }

    private boolean isWanted(Gpus.Gpu gpu) {
        return kind.gpu().isEmpty() || kind.gpu().get() == gpu.index();
    }

    private boolean isLost(Gpus.Gpu gpu) {
        return lost.flatMap(record -> record.find(gpu)).isPresent();
    }

    private Gpus.Gpu choose(List<Gpus.Gpu> usable, int all, int rank) {
        List<Gpus.Gpu> turn =
                usable.stream()
                        .filter(gpu -> kind.gpu().isPresent() || gpu.index() == rank % all)
                        .toList();
        List<Gpus.Gpu> idle = usable.stream().filter(gpu -> gpu.index() >= ranks).toList();
        List<Gpus.Gpu> among = turn.isEmpty() ? idle.isEmpty() ? usable : idle : turn;
        return among.get(rank % among.size());
    }

    /**
     * @throws DeviceException if GPUs that are wanted were lost, saying which and why
     */
    private void requireNoneLost(List<Gpus.Gpu> all) {
        for (Gpus.Gpu gpu : all) {
            Optional<String> loss = lost.flatMap(record -> record.find(gpu));
            if (isWanted(gpu) && loss.isPresent()) {
                throw new DeviceException(
                        "opening device %s: expected a GPU that this run has not lost, but GPU %d (%s) was: %s; remove %s when it is mended, or use other GPUs"
                                .formatted(
                                        kind.word(),
                                        gpu.index(),
                                        gpu.uuid(),
                                        loss.get(),
                                        lost.orElseThrow().file()));
            }
        }
    }

    @Override
    public void onLost(int rank, DeviceLostException loss, String reason) {
        Gpus.Gpu gpu = given.get(rank);
        if (loss.isGone() && gpu != null) {
            lost.ifPresent(record -> record.add(gpu, Instant.now(), reason));
        }
    }
}
