"""Django's settings: the environment, typed by `environment.py`, put where Django looks."""

from typing import Any
from urllib.parse import urlsplit

import django_stubs_ext

from hermes_site.environment import BASE_DIR, databases, read_environment
from hermes_site.secret_key import kept_secret_key

django_stubs_ext.monkeypatch()

ENVIRONMENT = read_environment()

SECRET_KEY = ENVIRONMENT.secret_key or kept_secret_key(ENVIRONMENT.data_dir)
DEBUG = ENVIRONMENT.debug
_public = urlsplit(ENVIRONMENT.public_url or "")
_secure = _public.scheme == "https"

ALLOWED_HOSTS = [*ENVIRONMENT.allowed_hosts, *filter(None, [_public.hostname])]
CSRF_TRUSTED_ORIGINS = [
    *ENVIRONMENT.csrf_trusted_origins,
    *([f"{_public.scheme}://{_public.netloc}"] if _public.netloc else []),
]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = _secure
SESSION_ENGINE = "hermes_site.web_sessions"
SESSION_COOKIE_HTTPONLY = True
SECURE_HSTS_SECONDS = 31_536_000 if _secure else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _secure else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    "hermes_site.apps.HermesAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "hermes_site.apps.SiteConfig",
    "sessions_app.apps.SessionsConfig",
    "gateway_app.apps.GatewayAppConfig",
    "channels",  # after ours: of two commands of one name the first app's counts (runworker)
]
MIDDLEWARE = [
    "hermes_site.middleware.ApiErrorsMiddleware",
    "hermes_site.middleware.ContentSecurityPolicyMiddleware",
    "hermes_site.middleware.NulMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "hermes_site.middleware.HostMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "hermes_site.urls"
ASGI_APPLICATION = "hermes_site.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = databases(ENVIRONMENT)
DATABASE_ROUTERS = ["sessions_app.database.ReaderRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": (
        {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [ENVIRONMENT.redis_url]},
        }
        if ENVIRONMENT.redis_url
        else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    )
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
    )
]
LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/accounts/login/"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LANGUAGE_COOKIE_AGE = 31_536_000
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "hermes_site.storage.HashedStaticFiles"},
}

DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "hermes_site.logs.LineFormatter",
            "format": "{asctime} {levelname} {name} {message}",
            "style": "{",
        }
    },
    "filters": {
        "no_login_secrets": {"()": "hermes_site.logs.HideLoginSecrets"},
        "no_probes": {"()": "hermes_site.logs.DropProbes"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["no_login_secrets"],
        }
    },
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "daphne": {"level": "WARNING"},
        "django.channels.server": {"level": "WARNING"},
        "django.request": {"filters": ["no_probes"]},
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
    },
}
