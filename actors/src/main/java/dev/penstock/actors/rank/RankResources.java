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
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.PlanRevisions;
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
 * @param revisions what plan and stages become when the run follows another plan
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
        DeviceFailureListener losses,
        PlanRevisions revisions) {

    /**
     * Of a process in which nothing goes wrong on purpose, ranks hand each other tensors past the
     * data plane where their devices allow it, and a fenced rank just ends.
     */
    public static RankResources of(
            RunPlan plan,
            DeviceFactory devices,
            StageProgramFactory programs,
            DataPlane dataPlane,
            CheckpointStore checkpoints) {
        return new RankResources(
                plan,
                devices,
                programs,
                dataPlane,
                checkpoints,
                FaultInjector.NONE,
                new MirrorRegistry(),
                new CollectiveRegistry(),
                CollectiveLibrary.NEVER,
                new TransferRegistry(true),
                _ -> {},
                DeviceFailureListener.NONE,
                PlanRevisions.NEVER);
    }

    /** These resources with faults on purpose. */
    public RankResources withFaults(FaultInjector other) {
        return with(parts -> parts.faults = other);
    }

    /** These resources for devices that sum and gather by themselves. */
    public RankResources withLibrary(CollectiveLibrary other) {
        return with(parts -> parts.library = other);
    }

    /** These resources with another registry, one for all ranks of the process. */
    public RankResources withTransfers(TransferRegistry other) {
        return with(parts -> parts.transfers = other);
    }

    /** These resources in a process that does something about a fenced rank. */
    public RankResources whenFenced(Consumer<String> action) {
        return with(parts -> parts.fenced = action);
    }

    /** These resources where something more is done about a lost device. */
    public RankResources whenDeviceLost(DeviceFailureListener next) {
        return with(parts -> parts.losses = losses.andThen(next));
    }

    /** These resources in a process that does something before it opens a device. */
    public RankResources beforeDevices(Runnable action) {
        return with(
                parts ->
                        parts.devices =
                                rank -> {
                                    action.run();
                                    return devices.open(rank);
                                });
    }

    /** These resources of a run whose plan may change. */
    public RankResources withRevisions(PlanRevisions other) {
        return with(parts -> parts.revisions = other);
    }

    /** What a rank works with that follows this plan of the run. */
    RankResources following(PlanRevision revision) {
        PlanRevisions.Revised revised = revisions.of(revision);
        return with(
                parts -> {
                    parts.plan = revised.plan();
                    parts.programs = revised.programs();
                });
    }

    private RankResources with(Consumer<Parts> change) {
        var parts = new Parts(this);
        change.accept(parts);
        return new RankResources(
                parts.plan,
                parts.devices,
                parts.programs,
                dataPlane,
                checkpoints,
                parts.faults,
                mirrors,
                collectives,
                parts.library,
                parts.transfers,
                parts.fenced,
                parts.losses,
                parts.revisions);
    }

    /** What may differ in a copy. */
    private static final class Parts {
        RunPlan plan;
        DeviceFactory devices;
        StageProgramFactory programs;
        FaultInjector faults;
        CollectiveLibrary library;
        TransferRegistry transfers;
        Consumer<String> fenced;
        DeviceFailureListener losses;
        PlanRevisions revisions;

        Parts(RankResources of) {
            plan = of.plan;
            devices = of.devices;
            programs = of.programs;
            faults = of.faults;
            library = of.library;
            transfers = of.transfers;
            fenced = of.fenced;
            losses = of.losses;
            revisions = of.revisions;
        }
    }
}
