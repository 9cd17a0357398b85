package dev.penstock.runtime.deploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.core.JsonProcessingException;
import dev.penstock.runtime.config.node.ClusterSection.Role;
import dev.penstock.runtime.config.node.ManagementSection.Discovery;
import dev.penstock.runtime.config.node.NodeConfig;
import dev.penstock.runtime.config.node.NodeLoader;
import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.ContainerPort;
import io.fabric8.kubernetes.api.model.EnvVar;
import io.fabric8.kubernetes.api.model.PersistentVolumeClaim;
import io.fabric8.kubernetes.api.model.PodSpec;
import io.fabric8.kubernetes.api.model.Probe;
import io.fabric8.kubernetes.api.model.Service;
import io.fabric8.kubernetes.api.model.ServiceAccount;
import io.fabric8.kubernetes.api.model.Volume;
import io.fabric8.kubernetes.api.model.VolumeMount;
import io.fabric8.kubernetes.api.model.apps.StatefulSet;
import io.fabric8.kubernetes.api.model.rbac.RoleBinding;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What can be known of {@code deploy/kubernetes} without a cluster. */
class KubernetesManifestsTest {
    private static final Path FILE = Path.of("..", "deploy", "kubernetes", "penstock.yaml");
    private static final Pattern VARIABLE = Pattern.compile("\\$\\{(\\w+)}");

    @TempDir Path folder;

    private String text = "";
    private Manifests manifests = new Manifests(List.of());
    private List<StatefulSet> sets = List.of();

    @BeforeEach
    void read() throws IOException {
        text = Files.readString(FILE);
        manifests = Manifests.parse(text);
        sets = manifests.all(StatefulSet.class);
    }

    @Test
    void thereAreSeedsAndWorkers() {
        assertThat(sets)
                .extracting(set -> set.getMetadata().getName())
                .containsExactly("penstock-seed", "penstock-worker");
    }

    /** Otherwise the rest of this proves little. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
                    periodSeconds: 5        | perioodSeconds: 5
                    periodSeconds: 5        | periodSeconds: soon
                    replicas: 3             | replicas: "3"
                    clusterIP: None         | clusterIps: None
                    accessModes: [          | accessMode: [
                    kind: StatefulSet       | kind: StatefulSets
                    """)
    void aFieldThatKubernetesDoesNotHaveIsRefused(String right, String wrong) {
        assertThat(text).contains(right);

        assertThatThrownBy(() -> Manifests.parse(text.replace(right, wrong)))
                .isInstanceOfAny(JsonProcessingException.class, IOException.class);
    }

    @Test
    void everySetOwnsItsPodsAndHasAServiceThatNamesThem() {
        for (StatefulSet set : sets) {
            Map<String, String> labels = labels(set);
            assertThat(labels).containsAllEntriesOf(set.getSpec().getSelector().getMatchLabels());
            Service service =
                    manifests.named(Service.class, set.getSpec().getServiceName()).orElseThrow();
            assertThat(labels).containsAllEntriesOf(service.getSpec().getSelector());
            assertThat(service.getSpec().getClusterIP()).isEqualTo("None");
            assertThat(service.getSpec().getPublishNotReadyAddresses()).isTrue();
            service.getSpec()
                    .getPorts()
                    .forEach(
                            port ->
                                    assertThat(port(set, port.getTargetPort().getStrVal()))
                                            .isEqualTo(port.getPort()));
        }
        assertThat(sets.get(0).getSpec().getSelector().getMatchLabels())
                .isNotEqualTo(sets.get(1).getSpec().getSelector().getMatchLabels());
    }

    @Test
    void probesAskThePortsThatTheNodesListenAt() throws IOException {
        for (StatefulSet set : sets) {
            NodeConfig config = config(set);
            assertThat(port(set, "control")).isEqualTo(config.cluster().port());
            assertThat(port(set, "management")).isEqualTo(config.management().port().orElse(0));
            Container container = container(set);
            probes(container.getReadinessProbe(), "/ready", config);
            probes(container.getLivenessProbe(), "/alive", config);
        }
    }

    private static void probes(Probe probe, String path, NodeConfig config) {
        assertThat(probe.getHttpGet().getPath()).isEqualTo(path);
        assertThat(probe.getHttpGet().getPort().getStrVal()).isEqualTo("management");
        assertThat(probe.getHttpGet().getScheme())
                .isEqualTo(config.tls().isOn() ? "HTTPS" : "HTTP");
        assertThat(probe.getTimeoutSeconds()).as("a node may take 5 s").isGreaterThan(5);
    }

    @Test
    void everyVolumeIsThereAndMounted() {
        for (StatefulSet set : sets) {
            PodSpec pod = pod(set);
            assertThat(container(set).getVolumeMounts())
                    .extracting(VolumeMount::getName)
                    .containsExactlyInAnyOrderElementsOf(
                            pod.getVolumes().stream().map(Volume::getName).toList());
            assertThat(container(set).getVolumeMounts())
                    .extracting(VolumeMount::getMountPath)
                    .doesNotHaveDuplicates();
            for (Volume volume : pod.getVolumes()) {
                if (volume.getConfigMap() != null) {
                    assertThat(manifests.named(ConfigMap.class, volume.getConfigMap().getName()))
                            .isPresent();
                }
                if (volume.getPersistentVolumeClaim() != null) {
                    String claim = volume.getPersistentVolumeClaim().getClaimName();
                    assertThat(manifests.named(PersistentVolumeClaim.class, claim))
                            .hasValueSatisfying(
                                    there ->
                                            assertThat(there.getSpec().getAccessModes())
                                                    .as("seeds and workers write to it")
                                                    .containsExactly("ReadWriteMany"));
                }
            }
        }
    }

    @Test
    void theSecretOfTheInstructionsIsTheOneThatIsMounted() {
        for (StatefulSet set : sets) {
            Volume tls = volume(set, "tls");
            assertThat(text)
                    .contains("create secret generic " + tls.getSecret().getSecretName() + " ")
                    .contains(
                            "--from-file=certs/ca.pem --from-file=certs/node.pem --from-file=certs/node.key");
        }
    }

    @Test
    void everyNodesFileLoadsAndFindsTheSeeds() throws IOException {
        for (StatefulSet set : sets) {
            NodeConfig config = config(set);
            assertThat(config.tls().isOn()).isTrue();
            assertThat(config.management().discovery()).isEqualTo(Discovery.KUBERNETES);
            assertThat(config.management().service().split(","))
                    .as("labels of the seeds and of nobody else")
                    .containsExactlyInAnyOrderElementsOf(
                            labels(sets.getFirst()).entrySet().stream()
                                    .map(label -> label.getKey() + "=" + label.getValue())
                                    .toList());
            assertThat(config.host())
                    .isEqualTo(
                            "%s-0.%s.penstock.svc.cluster.local"
                                    .formatted(
                                            set.getMetadata().getName(),
                                            set.getSpec().getServiceName()));
        }
        assertThat(config(sets.get(0)).cluster().role()).isEqualTo(Role.SEED);
        assertThat(config(sets.get(1)).cluster().role()).isEqualTo(Role.WORKER);
        assertThat(2 * config(sets.get(0)).management().requiredContacts())
                .as("never two clusters")
                .isGreaterThan(sets.getFirst().getSpec().getReplicas());
        assertThat(config(sets.get(0)).cluster().runs().toString())
                .isEqualTo(mount(sets.get(0), "runs"))
                .isEqualTo(mount(sets.get(1), "runs"));
    }

    @Test
    void podsMayAskForPods() {
        for (StatefulSet set : sets) {
            String account = pod(set).getServiceAccountName();
            assertThat(manifests.named(ServiceAccount.class, account)).isPresent();
            RoleBinding binding =
                    manifests.all(RoleBinding.class).stream()
                            .filter(
                                    each ->
                                            each.getSubjects().stream()
                                                    .anyMatch(
                                                            subject ->
                                                                    subject.getName()
                                                                            .equals(account)))
                            .findFirst()
                            .orElseThrow();
            var role =
                    manifests
                            .named(
                                    io.fabric8.kubernetes.api.model.rbac.Role.class,
                                    binding.getRoleRef().getName())
                            .orElseThrow();
            assertThat(role.getRules())
                    .singleElement()
                    .satisfies(
                            rule -> {
                                assertThat(rule.getResources()).containsExactly("pods");
                                assertThat(rule.getVerbs()).contains("get", "list");
                            });
        }
    }

    @Test
    void nodesRunWithoutPrivileges() {
        for (StatefulSet set : sets) {
            assertThat(pod(set).getSecurityContext().getRunAsNonRoot()).isTrue();
            var security = container(set).getSecurityContext();
            assertThat(security.getAllowPrivilegeEscalation()).isFalse();
            assertThat(security.getReadOnlyRootFilesystem()).isTrue();
            assertThat(security.getCapabilities().getDrop()).containsExactly("ALL");
        }
    }

    // ---- parts of a set ---------------------------------------------------------------------

    private static Map<String, String> labels(StatefulSet set) {
        return set.getSpec().getTemplate().getMetadata().getLabels();
    }

    private static PodSpec pod(StatefulSet set) {
        return set.getSpec().getTemplate().getSpec();
    }

    private static Container container(StatefulSet set) {
        assertThat(pod(set).getContainers()).hasSize(1);
        return pod(set).getContainers().getFirst();
    }

    private static int port(StatefulSet set, String name) {
        return container(set).getPorts().stream()
                .filter(port -> port.getName().equals(name))
                .mapToInt(ContainerPort::getContainerPort)
                .findFirst()
                .orElseThrow();
    }

    private static Volume volume(StatefulSet set, String name) {
        return pod(set).getVolumes().stream()
                .filter(volume -> volume.getName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private static String mount(StatefulSet set, String name) {
        return container(set).getVolumeMounts().stream()
                .filter(mount -> mount.getName().equals(name))
                .map(VolumeMount::getMountPath)
                .findFirst()
                .orElseThrow();
    }

    /**
     * What the first pod of a set reads, with its variables and with files for its certificates.
     */
    private NodeConfig config(StatefulSet set) throws IOException {
        Path inContainer = Path.of(container(set).getArgs().getLast());
        assertThat(container(set).getArgs().getFirst()).isEqualTo("node");
        assertThat(inContainer.getParent()).hasToString(mount(set, "config"));
        String map = volume(set, "config").getConfigMap().getName();
        String written =
                manifests
                        .named(ConfigMap.class, map)
                        .orElseThrow()
                        .getData()
                        .get(inContainer.getFileName().toString());
        assertThat(written).as(inContainer.toString()).isNotNull();
        assertThat(VARIABLE.matcher(written).results().map(found -> found.group(1)))
                .isSubsetOf(
                        container(set).getEnv().stream()
                                .map(EnvVar::getName)
                                .collect(Collectors.toSet()));
        for (String pem : List.of("node.pem", "node.key", "ca.pem")) {
            assertThat(written).contains(mount(set, "tls") + "/" + pem);
            Files.writeString(folder.resolve(pem), "");
        }
        Path file = folder.resolve(inContainer.getFileName());
        Files.writeString(
                file,
                written.replace("${POD_NAME}", set.getMetadata().getName() + "-0")
                        .replace("${POD_IP}", "10.1.2.3")
                        .replace(mount(set, "tls"), folder.toString()));
        return NodeLoader.load(file, List.of());
    }
}
