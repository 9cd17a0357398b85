package dev.penstock.actors.collective.wire;

import dev.penstock.actors.collective.CollectiveContract;
import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.dataplane.Deaf;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.cuda.device.Device;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;

/** Collectives of members that know each other by Aeron alone. */
class DataPlaneGroupTest extends CollectiveContract {
    private static final int RUN_RANKS = 10;
    private static final int TERM = 1 << 18; // 56 ways fit into a container's shared memory

    private final EmbeddedDriver driver =
            EmbeddedDriver.start(DriverSettings.inSharedMemory("collectives", TERM, 56));
    private final AeronDataPlane plane =
            AeronDataPlane.start(AeronSettings.ipc(driver.directory(), 42).withTermLength(TERM));

    @AfterEach
    void close() {
        plane.close();
        driver.close();
    }

    /** From which size on members send round a ring. */
    public long ringFromBytes() {
        return CollectiveForm.NEVER;
    }

    @Override
    public long expectedBytes(CollectiveKind kind, long bytes, int members, int member) {
        long onePhase = bytes * (members - 1) / members;
        return kind == CollectiveKind.ALL_REDUCE ? 2 * onePhase : onePhase;
    }

    @Override
    public Joined join(
            int epoch,
            List<Integer> ranks,
            int index,
            Device device,
            Duration limit,
            RankWaits waits) {
        var group =
                new DataPlaneGroup(
                        GroupRole.REPLICAS,
                        ranks,
                        index,
                        RUN_RANKS,
                        device.memory(),
                        device.kernels(),
                        limit,
                        ringFromBytes(),
                        waits);
        Endpoint endpoint =
                plane.open(ranks.get(index), epoch, group.inbound(), group.outbound(), new Deaf());
        group.bind(endpoint);
        return new Joined() {
            @Override
            public CollectiveGroup group() {
                return group;
            }

            @Override
            public void close() {
                endpoint.close();
            }
        };
    }
}
