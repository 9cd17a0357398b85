package dev.penstock.actors.rank;

import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.collective.shared.CollectiveRegistry;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.direct.TransferRegistry;
import dev.penstock.actors.fault.FaultInjector;
import dev.penstock.actors.mirror.MirrorRegistry;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.DeviceFactory;
import dev.penstock.actors.spi.DeviceFailureListener;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageProgramFactory;
import java.util.function.Consumer;

/**
 * What a process gives to the ranks that it hosts. Never leaves the process.
 *
 * @param faults what is made to go wrong on purpose
 * @param mirrors where ranks of this process that take over find what they start from
 * @param collectives where ranks of this process that sum and gather find each other
 * @param library whether devices sum and gather by themselves
 * @param transfers where ranks of this process that hand each other boundary tensors do
 * @param fenced told why, when the run continues without a rank of this process that lives still
 * @param losses told when a rank's device is lost
 */
public record RankResources(
        RunPlan plan,
        DeviceFactory devices,
        StageProgramFactory programs,
        DataPlane dataPlane,
        CheckpointStore checkpoints,
        FaultInjector faults,
        MirrorRegistry mirrors,
        CollectiveRegistry collectives,
        CollectiveLibrary library,
        TransferRegistry transfers,
        Consumer<String> fenced,
        DeviceFailureListener losses) {

    /** Ranks that are fenced just end. */
    public RankResources(
            RunPlan plan,
            DeviceFactory devices,
            StageProgramFactory programs,
            DataPlane dataPlane,
            CheckpointStore checkpoints,
            FaultInjector faults) {
        this(
                plan,
                devices,
                programs,
                dataPlane,
                checkpoints,
                faults,
                new MirrorRegistry(),
                new CollectiveRegistry(),
                CollectiveLibrary.NEVER,
                new TransferRegistry(true),
                _ -> {},
                DeviceFailureListener.NONE);
    }

    /** Nothing goes wrong on purpose. */
    public RankResources(
            RunPlan plan,
            DeviceFactory devices,
            StageProgramFactory programs,
            DataPlane dataPlane,
            CheckpointStore checkpoints) {
        this(plan, devices, programs, dataPlane, checkpoints, FaultInjector.NONE);
    }

    /** These resources for devices that sum and gather by themselves. */
    public RankResources withLibrary(CollectiveLibrary other) {
        return new RankResources(
                plan,
                devices,
                programs,
                dataPlane,
                checkpoints,
                faults,
                mirrors,
                collectives,
                other,
                transfers,
                fenced,
                losses);
    }

    /** These resources with another registry, one for all ranks of the process. */
    public RankResources withTransfers(TransferRegistry other) {
        return new RankResources(
                plan,
                devices,
                programs,
                dataPlane,
                checkpoints,
                faults,
                mirrors,
                collectives,
                library,
                other,
                fenced,
                losses);
    }

    /** These resources in a process that does something about a fenced rank. */
    public RankResources whenFenced(Consumer<String> action) {
        return new RankResources(
                plan,
                devices,
                programs,
                dataPlane,
                checkpoints,
                faults,
                mirrors,
                collectives,
                library,
                transfers,
                action,
                losses);
    }

    /** These resources where something more is done about a lost device. */
    public RankResources whenDeviceLost(DeviceFailureListener next) {
        return new RankResources(
                plan,
                devices,
                programs,
                dataPlane,
                checkpoints,
                faults,
                mirrors,
                collectives,
                library,
                transfers,
                fenced,
                losses.andThen(next));
    }

    /** These resources in a process that does something before it opens a device. */
    public RankResources beforeDevices(Runnable action) {
        return new RankResources(
                plan,
                rank -> {
                    action.run();
                    return devices.open(rank);
                },
                programs,
                dataPlane,
                checkpoints,
                faults,
                mirrors,
                collectives,
                library,
                transfers,
                fenced,
                losses);
    }
}
