{{- /* All objects have one name: the release's. */ -}}
{{- define "kubesched.fullname" -}}
{{- default .Release.Name .Values.nameOverride | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "kubesched.labels" -}}
app.kubernetes.io/name: {{ include "kubesched.fullname" . }}
app.kubernetes.io/component: scheduler
{{- end -}}

{{- define "kubesched.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "kubesched.config" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceNamespace: {{ .Values.leaderElection.resourceNamespace }}
  resourceName: {{ .Values.leaderElection.resourceName }}
profiles:
  {{- toYaml .Values.profiles | nindent 2 }}
{{- if .Values.config }}
{{ toYaml .Values.config }}
{{- end }}
{{- end -}}
