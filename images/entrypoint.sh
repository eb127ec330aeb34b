#!/usr/bin/env bash
# Run a command, or with the argument `executor` an executor of Spark on Kubernetes.
# Spark's driver sets the variables of executors: org.apache.spark.deploy.k8s.features.BasicExecutorFeatureStep.
set -euo pipefail

if [ "${1:-}" != executor ]; then
  exec "$@"
fi

options=()
for ((number = 0; ; number++)); do
  name="SPARK_JAVA_OPT_$number"
  [ -n "${!name+set}" ] || break
  options+=("${!name}")
done
exec "$JAVA_HOME/bin/java" "${options[@]}" \
  "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
  -cp "${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}${SPARK_CONF_DIR:+$SPARK_CONF_DIR:}$SPARK_HOME/jars/*" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" \
  --executor-id "$SPARK_EXECUTOR_ID" \
  --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" \
  --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
  --podName "$SPARK_EXECUTOR_POD_NAME"
