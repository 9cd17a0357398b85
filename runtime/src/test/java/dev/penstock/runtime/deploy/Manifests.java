package dev.penstock.runtime.deploy;

import com.fasterxml.jackson.databind.BeanDescription;
import com.fasterxml.jackson.databind.DeserializationConfig;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.deser.BeanDeserializerBuilder;
import com.fasterxml.jackson.databind.deser.BeanDeserializerModifier;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLParser;
import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.api.model.PersistentVolumeClaim;
import io.fabric8.kubernetes.api.model.Service;
import io.fabric8.kubernetes.api.model.ServiceAccount;
import io.fabric8.kubernetes.api.model.apps.StatefulSet;
import io.fabric8.kubernetes.api.model.rbac.Role;
import io.fabric8.kubernetes.api.model.rbac.RoleBinding;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Kubernetes objects, read as strictly as an API server does: a field that a type does not have, or
 * of another type, is an error.
 */
record Manifests(List<HasMetadata> objects) {
    private static final Map<String, Class<? extends HasMetadata>> KINDS =
            Map.of(
                    "v1 ConfigMap", ConfigMap.class,
                    "v1 Service", Service.class,
                    "v1 ServiceAccount", ServiceAccount.class,
                    "v1 PersistentVolumeClaim", PersistentVolumeClaim.class,
                    "apps/v1 StatefulSet", StatefulSet.class,
                    "rbac.authorization.k8s.io/v1 Role", Role.class,
                    "rbac.authorization.k8s.io/v1 RoleBinding", RoleBinding.class);

    private static final ObjectMapper STRICT =
            YAMLMapper.builder()
                    .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
                    .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
                    .enable(YAMLParser.Feature.PARSE_BOOLEAN_LIKE_WORDS_AS_STRINGS)
                    .addModule(new SimpleModule().setDeserializerModifier(new NoOtherFields()))
                    .build();

    /** The models of Kubernetes' types would take any other field as well. */
    private static final class NoOtherFields extends BeanDeserializerModifier {
        private static final long serialVersionUID = 1L;

        @Override
        public BeanDeserializerBuilder updateBuilder(
                DeserializationConfig config,
                BeanDescription type,
                BeanDeserializerBuilder builder) {
            builder.setAnySetter(null);
            return builder;
        }
    }

    static Manifests parse(String yaml) throws IOException {
        List<HasMetadata> objects = new ArrayList<>();
        try (var documents = STRICT.readerFor(JsonNode.class).<JsonNode>readValues(yaml)) {
            while (documents.hasNext()) {
                JsonNode document = documents.next();
                String kind =
                        document.path("apiVersion").asText() + " " + document.path("kind").asText();
                Class<? extends HasMetadata> type =
                        Optional.ofNullable(KINDS.get(kind))
                                .orElseThrow(() -> new IOException("an unknown kind: " + kind));
                objects.add(STRICT.treeToValue(document, type));
            }
        }
        return new Manifests(objects);
    }

    <T extends HasMetadata> List<T> all(Class<T> type) {
        return objects.stream().filter(type::isInstance).map(type::cast).toList();
    }

    /** The object of a type that is called so. */
    <T extends HasMetadata> Optional<T> named(Class<T> type, String name) {
        return all(type).stream()
                .filter(object -> object.getMetadata().getName().equals(name))
                .findFirst();
    }
}
