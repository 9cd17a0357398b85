package dev.penstock.actors.cluster;

import dev.penstock.actors.simulation.World;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Supervises an imagined run: seats its ranks where nodes announce room for them, commits steps
 * while all are there, and wants ranks and drivers started in the place of those that are gone. In
 * place of real deadlines it waits for as long as it takes; {@link ClusterSimulation} says when
 * that was too long. Unlike the real one it sends no rank back to a node that it has left.
 */
final class SimRunSupervisor {
    private static final long TICK = World.SECOND / 2;
    private static final long LEASE = 3 * World.SECOND;
    private static final long GATHERING = 30 * World.SECOND;
    private static final long BROKEN_LINK = 5 * World.SECOND;

    /** A rank where it was born last. */
    private record Seat(SimRankHost host, int birth) {}

    private final SimSeed seed;
    private final SimRunFiles files;
    private final World world;
    private final Map<Integer, Seat> seats = new TreeMap<>();
    private final Map<Integer, Long> heard = new HashMap<>();
    private final Set<Integer> askedFor = new HashSet<>();
    private final Set<Integer> nowhere = new HashSet<>();
    private final Set<String> dead = new HashSet<>();
    private final Map<String, String> driversAfter = new HashMap<>();
    private final Set<String> driversDown = new HashSet<>();
    private boolean gathers;
    private boolean placing;
    private boolean running;
    private boolean asksForRoom;
    private boolean interrupted;
    private boolean ended;
    private long beganAt;
    private long nextStep;
    private long brokenSince = -1;

    SimRunSupervisor(SimSeed seed, SimRunFiles files) {
        this.seed = seed;
        this.files = files;
        this.world = seed.world;
    }

    void begin() {
        gathers = files.hasBegun();
        placing = !gathers;
        files.begin();
        beganAt = world.now();
        if (gathers) {
            raise("the supervisor was gone");
        }
        tick();
    }

    boolean hasEnded() {
        return ended;
    }

    /** The process of each rank that has one. */
    Map<Integer, String> homes() {
        Map<Integer, String> homes = new TreeMap<>();
        seats.forEach((rank, seat) -> homes.put(rank, seat.host().process()));
        return homes;
    }

    // ---- what it is told ------------------------------------------------------------------------

    void hear(PipelineSupervisor.Command command) {
        if (ended) {
            return;
        }
        if (!(command instanceof PipelineSupervisor.NoRoom)) {
            world.note("%s hears %s", this, command);
        }
        switch (command) {
            case PipelineSupervisor.Interrupt _ -> interrupted = true;
            case PipelineSupervisor.NodeDied(String process, boolean withLink, String how) ->
                    onNodeDied(process, withLink, how);
            case PipelineSupervisor.NodeBack(String process) -> dead.remove(process);
            case PipelineSupervisor.Nowhere(Set<Integer> ranks) ->
                    ranks.stream().filter(rank -> !seats.containsKey(rank)).forEach(nowhere::add);
            case PipelineSupervisor.LinkDied(String directory, String how) -> {
                if (placing) {
                    end(new RunOutcome.Failed(files.step(), "the driver died: " + how));
                } else {
                    driversDown.add(directory);
                    raise("a driver died: " + how);
                    seed.restartLink(files, driversDown);
                }
            }
            case PipelineSupervisor.LinkRestarted(String former, String directory) ->
                    onLinkRestarted(former, directory);
            case PipelineSupervisor.Move(Set<Integer> ranks) -> onMove(ranks);
            case PipelineSupervisor.NoRoom _ -> {}
            default -> throw new AssertionError("nobody says so: " + command);
        }
    }

    private void onNodeDied(String process, boolean withLink, String how) {
        dead.add(process);
        List<Integer> gone = new ArrayList<>();
        seats.forEach(
                (rank, seat) -> {
                    if (seat.host().process().equals(process)) {
                        gone.add(rank);
                    }
                });
        if (withLink) {
            gone.forEach(rank -> driversDown.add(driver(seat(rank).host())));
            if (gone.isEmpty()) {
                driversDown.add("");
            }
        }
        if (!gone.isEmpty() || withLink) {
            lose(gone, "node %s died: %s".formatted(process, how));
        }
        if (withLink) {
            seed.restartLink(files, driversDown);
        }
    }

    private Seat seat(int rank) {
        return Optional.ofNullable(seats.get(rank)).orElseThrow();
    }

    private void onLinkRestarted(String former, String directory) {
        driversAfter.replaceAll((_, last) -> last.equals(former) ? directory : last);
        driversAfter.put(former, directory);
        if (former.isEmpty()) {
            driversDown.clear();
        } else {
            driversDown.removeAll(Set.of(former, ""));
        }
    }

    private String driver(SimRankHost host) {
        return driversAfter.getOrDefault(host.firstDriver, host.firstDriver);
    }

    private boolean driversAreDown() {
        return driversDown.contains("")
                || seats.values().stream()
                        .anyMatch(seat -> driversDown.contains(driver(seat.host())));
    }

    private void onMove(Set<Integer> ranks) {
        List<Integer> moving = ranks.stream().filter(seats::containsKey).sorted().toList();
        for (int rank : moving) {
            seat(rank).host().births.remove(rank);
            if (seat(rank).host().rank == rank) {
                seat(rank).host().leave();
            }
        }
        if (!moving.isEmpty()) {
            lose(moving, "on the way to other nodes");
        }
    }

    // ---- what it sees ---------------------------------------------------------------------------

    private void tick() {
        if (ended) {
            return;
        }
        seed.after(TICK, this::tick);
        if (!files.isHeldBy(seed)) {
            end(new RunOutcome.Failed(files.step(), "another seed has the run"));
            return;
        }
        if (interrupted) {
            end(new RunOutcome.Interrupted(files.step()));
            return;
        }
        if (gathers) {
            gather();
        }
        if (!lookForDeaths() || gathers) {
            return;
        }
        dismissStrays();
        if (!driversAreDown()) {
            seatTheMissing();
            goOn();
        }
    }

    private List<SimRankHost> announced() {
        return seed.cluster.hosts(files).stream()
                .filter(host -> !host.hasEnded() && host.isListed(world.now()))
                .filter(host -> seed.reaches(host.node()))
                .filter(host -> !dead.contains(host.process()))
                .toList();
    }

    private boolean isThere(int rank, Seat seat) {
        return !seat.host().hasEnded()
                && Integer.valueOf(seat.birth()).equals(seat.host().births.get(rank));
    }

    /**
     * Looks for ranks that say nothing any more, or whose node says that they are not there.
     *
     * @return false if nothing can be decided, since too few are here
     */
    private boolean lookForDeaths() {
        List<Integer> lost = new ArrayList<>();
        boolean unproved = false;
        int here = 0;
        for (Map.Entry<Integer, Seat> each : seats.entrySet()) {
            SimClusterNode node = each.getValue().host().node();
            boolean reached = seed.reaches(node);
            if (reached && isThere(each.getKey(), each.getValue())) {
                heard.put(each.getKey(), world.now());
                here++;
            } else if (world.now() - heard.getOrDefault(each.getKey(), 0L) > LEASE) {
                lost.add(each.getKey());
                unproved |= !reached;
            }
        }
        if (unproved && 2 * here <= files.plan.ranks()) {
            return false;
        }
        if (!lost.isEmpty()) {
            lost.forEach(rank -> seat(rank).host().births.remove(rank)); // is told to end
            lose(lost, "they are silent");
        }
        return true;
    }

    private void gather() {
        for (SimRankHost host : announced()) {
            host.births.forEach(
                    (rank, birth) -> {
                        Seat known = seats.get(rank);
                        if (known == null || known.birth() < birth) {
                            seats.put(rank, new Seat(host, birth));
                            heard.put(rank, world.now());
                            nowhere.remove(rank);
                        }
                    });
        }
        boolean late = world.now() - beganAt > GATHERING;
        gathers = !late && seats.size() + nowhere.size() < files.plan.ranks();
        seed.cluster.checkRoom();
    }

    private void dismissStrays() {
        for (SimRankHost host : announced()) {
            host.births
                    .entrySet()
                    .removeIf(
                            birth ->
                                    !new Seat(host, birth.getValue())
                                            .equals(seats.get(birth.getKey())));
        }
    }

    // ---- what it does ---------------------------------------------------------------------------

    private void lose(List<Integer> ranks, String cause) {
        ranks.forEach(seats::remove);
        raise("ranks %s: %s".formatted(ranks, cause));
        if (seed.cluster.scenario.mirrors() && !gathers && !seats.isEmpty() && world.chance(0.5)) {
            askForRoomAtMirrors();
        }
    }

    private void raise(String cause) {
        int epoch = files.raise();
        placing = false;
        running = false;
        askedFor.clear();
        seed.recovering(files, epoch, cause);
    }

    private void askForRoomAtMirrors() {
        Map<Integer, SimRankHost> holders = new TreeMap<>();
        List<Seat> living = List.copyOf(seats.values());
        missing().forEach(rank -> holders.put(rank, world.one(living).host()));
        Map<Integer, String> processes = new TreeMap<>();
        holders.forEach((rank, host) -> processes.put(rank, host.process()));
        int epoch = files.epoch();
        asksForRoom = true;
        seed.takeIn(
                files,
                processes,
                granted -> {
                    asksForRoom = false;
                    if (granted && !ended && epoch == files.epoch() && files.isHeldBy(seed)) {
                        holders.forEach(this::seatAt);
                    }
                });
    }

    private Set<Integer> missing() {
        Set<Integer> missing = new TreeSet<>();
        for (int rank = 0; rank < files.plan.ranks(); rank++) {
            if (!seats.containsKey(rank)) {
                missing.add(rank);
            }
        }
        return missing;
    }

    private void seatTheMissing() {
        if (asksForRoom) {
            return;
        }
        List<SimRankHost> hosts = announced();
        for (int rank : missing()) {
            Optional<SimRankHost> host =
                    hosts.stream()
                            .filter(each -> each.rank == rank && each.takesItsRank())
                            .min(Comparator.comparing(SimRankHost::process));
            if (host.isPresent()) {
                seatAt(rank, host.get());
            } else if (!placing && askedFor.add(rank)) {
                world.note("%s wants rank %d started", this, rank);
                seed.startRank(files, rank);
            }
        }
    }

    private void seatAt(int rank, SimRankHost host) {
        world.note("%s seats rank %d at %s", this, rank, host.node());
        seats.put(rank, new Seat(host, files.epoch()));
        seed.cluster.hosts(files).stream()
                .filter(each -> each.rank == rank && each != host)
                .forEach(SimRankHost::passOver);
        heard.put(rank, world.now());
        host.births.put(rank, files.epoch());
        files.place(rank, host.process());
        seed.placed(files, rank, host.process());
        seed.cluster.checkRoom();
    }

    private void goOn() {
        if (!missing().isEmpty() || !seats.entrySet().stream().allMatch(this::isThere)) {
            return;
        }
        if (!running) {
            running = true;
            nextStep = world.now() + files.wanted.stepNanos();
            seats.values()
                    .forEach(
                            seat -> {
                                String directory = driversAfter.get(seat.host().firstDriver);
                                if (directory != null) {
                                    seat.host().share.relink(directory);
                                }
                            });
            if (!placing) {
                seed.recovered(files, files.step());
            }
            placing = false;
        }
        if (!seats.values().stream().allMatch(this::hasDriver)) {
            onBrokenLinks();
            return;
        }
        brokenSince = -1;
        if (world.now() >= nextStep) {
            nextStep = world.now() + files.wanted.stepNanos();
            files.commit();
            seed.step(files, files.step());
            if (files.step() >= files.wanted.steps()) {
                end(new RunOutcome.Completed(files.step()));
            }
        }
    }

    private boolean isThere(Map.Entry<Integer, Seat> each) {
        return isThere(each.getKey(), each.getValue())
                && seed.reaches(each.getValue().host().node());
    }

    private boolean hasDriver(Seat seat) {
        return seed.cluster.hasDriver(driver(seat.host()));
    }

    /** Whoever started a driver that is gone may have died as well, before anybody was told. */
    private void onBrokenLinks() {
        if (brokenSince < 0) {
            brokenSince = world.now();
        } else if (world.now() - brokenSince > BROKEN_LINK) {
            brokenSince = -1;
            seats.values().stream()
                    .filter(seat -> !hasDriver(seat))
                    .forEach(seat -> driversDown.add(driver(seat.host())));
            raise("links broke");
            seed.restartLink(files, driversDown);
        }
    }

    private void end(RunOutcome outcome) {
        world.note("%s ends: %s", this, outcome);
        ended = true;
        if (files.isHeldBy(seed) && files.ending() == null) {
            seed.cluster.ended(files, outcome);
        }
        seed.supervisorEnded(files, outcome);
    }

    /** What it waits for, for people. */
    String state() {
        return "room %s, placing %s, seats %s, missing %s, asked for %s, gathers %s, drivers down %s, dead %s"
                .formatted(
                        asksForRoom,
                        placing,
                        homes(),
                        missing(),
                        askedFor,
                        gathers,
                        driversDown,
                        dead);
    }

    @Override
    public String toString() {
        return "supervisor of %s on %s".formatted(files.name(), seed);
    }
}
